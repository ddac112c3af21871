from prometheus_client.parser import text_string_to_metric_families

from redrive.server.exposition import family, histogram
from redrive.telemetry.meters import Histogram
from redrive.workers.supervisor import MetricsSum


def metrics(sent: float, level: float, *seconds: float) -> str:
    measured = Histogram((0.1, 1.0))
    for value in seconds:
        measured.observe(value)
    lines = [
        *family("sent_total", "counter", "Messages sent", [('{queue="a b"}', sent)]),
        *family("waiting", "gauge", "Messages that wait", [("", level)]),
        *histogram("took_seconds", "Time taken", [([("to", "web")], measured.read())]),
    ]
    return "".join(f"{line}\n" for line in lines)


def read(text: str) -> dict[str, float]:
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for each in text_string_to_metric_families(text)
        for sample in each.samples
    }


def test_counters_and_histograms_are_added_and_of_gauges_the_greatest_counts() -> None:
    total = MetricsSum()
    total.add(metrics(2, 7, 0.05))
    total.add(metrics(3, 9, 0.5, 5))
    total.add(metrics(0, 8))
    assert read(total.text) == read(metrics(5, 9, 0.05, 0.5, 5))


def test_a_process_that_ended_leaves_its_counters_and_no_gauges() -> None:
    ended = MetricsSum()
    ended.add(metrics(2, 7), gauges=False)
    ended.add(metrics(2, 8), gauges=False)
    total = MetricsSum()
    total.add(metrics(1, 3))
    total.add(ended.text, gauges=False)
    assert read(total.text) == read(metrics(5, 3))


def test_each_family_has_its_head_once_before_its_samples() -> None:
    total = MetricsSum()
    for _ in range(3):
        total.add(metrics(1, 1, 1))
    lines = total.text.splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        line for line in metrics(1, 1, 1).splitlines() if line.startswith("#")
    ]
    assert lines[:3] == [
        "# HELP sent_total Messages sent",
        "# TYPE sent_total counter",
        'sent_total{queue="a b"} 3',
    ]
