from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from redrive.cli.main import main
from redrive.cli.picture import DrawnOutage, draw, picture
from redrive.model.outage import outage
from redrive.model.retry import Phase, RetryCurve, RetrySchedule, Stage
from redrive.model.retry_plans import PLANS
from redrive.model.timetable import COLUMNS_MAX, Column, columns_of, phase_starts, runs_of

SVG = "{http://www.w3.org/2000/svg}"


def columns(name: str) -> list[Column]:
    return columns_of(runs_of(PLANS[name].schedule, 0))


def of(*waits_ms: int) -> list[Column]:
    return [Column(place, Phase.BACKOFF, wait_ms) for place, wait_ms in enumerate(waits_ms, start=2)]


def test_bars_grow_with_the_waits_and_the_least_is_seen() -> None:
    assert draw(of(0, 1, 3200, 6400)).splitlines() == [
        "6.4 s ┤                  █████",
        "      ┤                  █████",
        "      ┤                  █████",
        "      ┤                  █████",
        "      ┤            █████ █████",
        "      ┤            █████ █████",
        "      ┤            █████ █████",
        "  0 s ┤      ▁▁▁▁▁ █████ █████",
        "      └┬───────────────────────",
        "       2                 5",
    ]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("room", [40, 50, 66])
def test_a_chart_fits_a_narrow_screen(name: str, room: int) -> None:
    lines = draw(columns(name), room).splitlines()
    assert max(map(len, lines)) <= room
    assert len(lines) == 10


def test_a_chart_of_no_waits_is_flat() -> None:
    assert "█" not in draw(of(0, 0, 0))


@pytest.mark.parametrize("retries", [1, 59, 60, 61, 100])
def test_a_chart_is_no_wider_than_a_terminal(retries: int) -> None:
    schedule = RetrySchedule((Stage(Phase.BACKOFF, retries, 1000, 60_000, RetryCurve.LINEAR),))
    drawn = draw(columns_of(runs_of(schedule, 0)))
    assert max(map(len, drawn.splitlines())) <= COLUMNS_MAX + 12
    assert drawn.splitlines()[-1].endswith(str(retries + 1))


def test_a_long_run_is_cut_and_shows_it() -> None:
    managed = columns("managed")
    assert [column.attempt for column in managed[-2:]] == [25, 100_016]
    assert [column.cut for column in managed].count(True) == 1
    assert [managed[place].attempt for place in phase_starts(managed)] == [2, 5, 7, 17]
    *bars, axis, _ = draw(managed).splitlines()
    assert axis.count(" ⋯ ") == 1
    gap = axis.index(" ⋯ ")
    assert {bar[gap : gap + 3] for bar in bars} == {"   "}


def test_a_gap_stays_where_columns_are_thinned() -> None:
    columns = [column._replace(cut=column.attempt == 5) for column in of(*range(1, 100))]
    assert draw(columns, 40).splitlines()[-2].count(" ⋯ ") == 1


@pytest.mark.parametrize("name", PLANS)
def test_a_picture_has_a_dot_a_retry_within_the_sheet(name: str) -> None:
    root = ET.fromstring(picture(columns(name), "A title <&>", "and more"))
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title") == "A title <&>: and more"
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.iter(f"{SVG}circle")]
    assert len(dots) == len(columns(name))
    assert dots == sorted(dots, key=lambda dot: (dot[0], -dot[1]))
    assert all(0 < x < width and 0 < y < height for x, y in dots)


def test_a_picture_says_what_each_phase_is() -> None:
    root = ET.fromstring(picture(columns("managed"), "", ""))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"20 s", "100,016", "backoff: 10 after 1 s to 20 s", "post-backoff: 100,000 after 20 s"} <= set(
        texts
    )


@pytest.mark.parametrize("name", PLANS)
def test_no_text_of_the_legend_shares_a_line_with_another(name: str) -> None:
    root = ET.fromstring(picture(columns(name), "", "", outage_of(name, 3_600_000)))
    below = [text for text in root.iter(f"{SVG}text") if float(text.attrib["y"]) > 460]
    phases = len(phase_starts(columns(name)))
    assert len({text.attrib["y"] for text in below}) == len(below) == phases + 1
    assert all(float(text.attrib["y"]) < float(root.attrib["height"]) for text in below)


def test_omitted_retries_are_a_gap_with_their_number() -> None:
    root = ET.fromstring(picture(columns("managed"), "", ""))
    (gap,) = [each for each in root.iter(f"{SVG}polygon") if each.attrib["class"] == "gap"]
    edges = [float(point.split(",")[0]) for point in gap.attrib["points"].split()]
    dots = [float(dot.attrib["cx"]) for dot in root.iter(f"{SVG}circle")]
    assert sum(x < min(edges) for x in dots) == len(dots) - 1
    assert max(edges) < dots[-1]
    assert "99,990" in [text.text for text in root.iter(f"{SVG}text")]
    assert not list(ET.fromstring(picture(columns("customer"), "", "")).iter(f"{SVG}polygon"))


def outage_of(name: str, outage_ms: int) -> DrawnOutage:
    return DrawnOutage(outage(PLANS[name].schedule, 0, outage_ms), "Down.")


@pytest.mark.parametrize(
    ("name", "outage_ms", "failed"),
    [
        ("customer", 30 * 60_000, 12),  # 13 attempts fail, the first of which has no dot
        ("http", 1, 0),
        ("managed", 40 * 86_400_000, 26 - 1),
        ("managed", 4 * 3_600_000, 26 - 2),  # ends in the gap
    ],
)
def test_an_outage_is_drawn_over_the_attempts_that_fail(name: str, outage_ms: int, failed: int) -> None:
    root = ET.fromstring(picture(columns(name), "", "", outage_of(name, outage_ms)))
    (band,) = [each for each in root.iter(f"{SVG}rect") if each.attrib.get("class") == "outage"]
    end = float(band.attrib["x"]) + float(band.attrib["width"])
    dots = list(root.iter(f"{SVG}circle"))
    assert sum(float(dot.attrib["cx"]) < end for dot in dots) == failed
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "Down." in texts
    assert ("734" in texts) is (outage_ms == 4 * 3_600_000)


def test_attempts_that_are_not_made_are_hollow() -> None:
    root = ET.fromstring(picture(columns("customer"), "", "", outage_of("customer", 30 * 60_000)))
    fills = [dot.attrib["fill"] for dot in root.iter(f"{SVG}circle")]
    assert fills[13:] == ["#ffffff"] * (50 - 13)
    assert "#ffffff" not in fills[:13]


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "curve.svg"
    assert main(["schedule", "--plan", "customer", "--picture", str(file)]) == 0
    assert capsys.readouterr().out.endswith(f"The picture is in {file}.\n")
    assert ET.parse(file).getroot().tag == f"{SVG}svg"
