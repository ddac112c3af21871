import json
from pathlib import Path
from typing import Any

import pytest

from redrive.cli.main import main
from redrive.model.retry_plans import PLANS
from redrive.model.timetable import runs_of
from tests.aws.sns.samples import DELIVERY_POLICY

Capture = pytest.CaptureFixture[str]

SAMPLE_TEXT = """\
policy.json: 51 attempts, the last 36 min 13 s to 37 min 9 s after publication

attempt  phase             wait     earliest      latest
      1                                  0 s         0 s
      2  immediate          0 s          0 s         0 s
      3  immediate          0 s          0 s         0 s
      4  immediate          0 s          0 s         0 s
      5  pre-backoff        1 s      0.975 s         1 s
      6  pre-backoff        1 s       1.95 s         2 s
      7  backoff            1 s      2.925 s         3 s
      8  backoff        1.115 s      4.013 s     4.115 s
      9  backoff        1.346 s      5.326 s     5.461 s
     10  backoff        1.808 s      7.089 s     7.269 s
     11  backoff        2.732 s      9.753 s    10.001 s
     12  backoff        4.579 s     14.218 s     14.58 s
     13  backoff        8.274 s     22.286 s    22.854 s
     14  backoff       15.663 s     37.558 s    38.517 s
     15  backoff       30.442 s    1 min 7 s   1 min 9 s
     16  backoff          1 min    2 min 6 s   2 min 9 s
     17  post-backoff     1 min    3 min 4 s   3 min 9 s
      ⋮  33 more
     51  post-backoff     1 min  36 min 13 s  37 min 9 s

wait before each attempt
1 min ┤              ████████████████████████████████████
      ┤              ████████████████████████████████████
      ┤              ████████████████████████████████████
      ┤              ████████████████████████████████████
      ┤             █████████████████████████████████████
      ┤            ▁█████████████████████████████████████
      ┤           ▁██████████████████████████████████████
  0 s ┤   ▁▁▁▁▁▂▃▅███████████████████████████████████████
      └┬──┬─┬─────────┬──────────────────────────────────
       2  5 7         17                                51

At most 10 deliveries a second: behind a backlog an attempt comes later than this.

Down for 4 h: dead-lettered after attempt 51, 37 min 9 s after publication.
"""


def written(tmp_path: Path, policy: object) -> str:
    file = tmp_path / "policy.json"
    file.write_text(policy if isinstance(policy, str) else json.dumps(policy))
    return str(file)


def said(capsys: Capture, *arguments: str) -> str:
    assert main(["schedule", *arguments]) == 0
    return capsys.readouterr().out


def test_a_policy_and_an_outage(tmp_path: Path, capsys: Capture) -> None:
    assert said(capsys, "--policy", written(tmp_path, DELIVERY_POLICY), "--outage", "4h") == SAMPLE_TEXT


def test_a_topics_policy_reads_like_a_subscriptions(tmp_path: Path, capsys: Capture) -> None:
    topics = {
        "http": {
            "defaultHealthyRetryPolicy": DELIVERY_POLICY["healthyRetryPolicy"],
            "defaultThrottlePolicy": DELIVERY_POLICY["throttlePolicy"],
        }
    }
    assert said(capsys, "--policy", written(tmp_path, topics), "--outage", "4h") == SAMPLE_TEXT


def test_without_retries_there_is_a_table_and_no_chart(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "none.svg"
    file = written(tmp_path, {"healthyRetryPolicy": {"numRetries": 0}})
    text = said(capsys, "--policy", file, "--outage", "1s", "--picture", str(picture))
    assert text == (
        "policy.json: one attempt, no retries\n\n"
        "attempt  phase  wait  earliest  latest\n"
        "      1                    0 s     0 s\n\n"
        "Down for 1 s: dead-lettered after attempt 1, 0 s after publication.\n"
    )
    assert not picture.exists()


def test_the_longest_plan_is_folded(capsys: Capture) -> None:
    lines = said(capsys, "--plan", "managed").splitlines()
    assert len(lines) < 40
    assert "      ⋮  99,998 more" in lines
    assert "100,016  post-backoff      20 s  22 d 13 h 40 min 48 s  23 d 3 h 34 min 10 s" in lines


@pytest.mark.parametrize(
    ("arguments", "by_the_published_waits", "by_jitter"),
    [
        (
            ("managed", "4h"),
            "delivered by attempt 734, 4 h 10 s after publication.",
            "short as jitter makes it: delivered by attempt 752, 4 h after publication.",
        ),
        (
            ("http", "20s"),
            "delivered by attempt 2, 20 s after publication.",
            "short as jitter makes it: delivered by attempt 3, 39 s after publication.",
        ),
        (  # the last retry comes between 58.5 s and 60 s
            ("http", "59s"),
            "delivered by attempt 4, 1 min after publication.",
            "short as jitter makes it: dead-lettered after attempt 4, 58.5 s after publication.",
        ),
        (  # a time-out stretches 20 s to 35 s
            ("http", "59s", "--attempt", "15s"),
            "delivered by attempt 3, 1 min 25 s after publication.",
            None,
        ),
        (  # an event's waits are minimums: jitter only lengthens them
            ("event-grid", "41s"),
            "delivered by attempt 4, 1 min 40 s after publication.",
            "long as jitter makes it: delivered by attempt 3, 41 s after publication.",
        ),
        (
            ("event-grid", "4d"),
            "dead-lettered 1 d 10 h 46 min 40 s after publication: attempt 12 is due after the time to live of 1 d.",
            None,
        ),
        (("function", "10min"), "dead-lettered after attempt 3, 3 min after publication.", None),
    ],
)
def test_an_outage_is_shown_with_the_retry_that_ends_it(
    arguments: tuple[str, ...], by_the_published_waits: str, by_jitter: str | None, capsys: Capture
) -> None:
    plan, outage, *others = arguments
    text = said(capsys, "--plan", plan, "--outage", outage, *others)
    first, *rest = text.rpartition("\n\n")[2].splitlines()
    assert first.partition(": ")[2] == by_the_published_waits
    assert rest == ([f"  with every wait as {by_jitter}"] if by_jitter else [])


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_listed_to_its_last_attempt(name: str) -> None:
    schedule = PLANS[name].schedule
    runs = runs_of(schedule, 0)
    assert sum(run.length for run in runs) == runs[-1].last.attempt
    assert runs[-1].last.attempt == (11 if name == "event-grid" else schedule.retries_max + 1)


def test_the_time_an_attempt_takes_comes_on_top(capsys: Capture) -> None:
    lines = said(capsys, "--plan", "http", "--attempt", "15s").splitlines()
    assert lines[3].split() == ["1", "0", "s", "0", "s"]
    assert lines[6].split() == ["4", "backoff", "20", "s", "1", "min", "44", "s", "1", "min", "45", "s"]


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ("{", "failed to parse JSON"),
        ("[]", "must be a JSON object"),
        ({"healthyRetryPolicy": {"numRetries": 101}}, "numRetries must be less than or equal to 100"),
        ({"http": {"healthyRetryPolicy": {}}}, "healthyRetryPolicy is not a recognized attribute"),
    ],
)
def test_malformed_delivery_policies_are_refused(
    policy: Any, complaint: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["schedule", "--policy", written(tmp_path, policy)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err


def test_a_picture_is_an_svg(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "curve.png"
    with pytest.raises(SystemExit, match="2"):
        main(["schedule", "--plan", "http", "--picture", str(picture)])
    assert "does not end in .svg" in capsys.readouterr().err
    assert not picture.exists()


def test_a_missing_file_is_said(tmp_path: Path, capsys: Capture) -> None:
    assert main(["schedule", "--policy", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
