"""Many seeds; one that fails says how to see it: `python -m tests.simulation --seed N`."""

import functools
import os
import subprocess
import sys
from itertools import chain, count, islice

import pytest
from hypothesis import settings

from tests.simulation.mutants import MUTANTS
from tests.simulation.options import draw
from tests.simulation.rules import Rule
from tests.simulation.run import Broken, Result, simulate
from tests.simulation.world import InMemory
from tests.tidy import ROOT

# They are the same in every run. All marks are met by seed 34, and no mutant needs more than 30; more seeds are run by
# `make test-deep`, and by `python -m tests.simulation --seeds 10000`.
SEEDS = 60 if settings().max_examples < 1_000 else 1_000
CHUNK = 20  # so that pytest's processes share them
# The seed that is tried first on a mutant which seed 0 does not find out; after it, all of them in order.
FIRST_SEEDS = {
    **dict.fromkeys(("Careless", "Forsaking", "Indiscriminate", "Optimistic", "Tireless", "Wordless"), 1),
    "Impatient": 2,
    "Forgetful": 5,
    **dict.fromkeys(("Pedantic", "Talkative"), 6),
    "Doubling": 12,
    "Dismissive": 13,
    **dict.fromkeys(("Greedy", "Untiring"), 15),
    "Crowding": 30,
}

# Each is met in these seeds by itself; one that no longer is has lost its way to what it is there to show.
MARKS = {
    *("dead-lettered", "deduplicated", "deleted", "expired", "moved", "purged", "extended", "given back"),
    *("refused: gone", "refused: lapsed", "refused: superseded", "late, but nobody had begun anew"),
    *(
        "a claim repeated",
        "a group in two hands, as its holder wished",
        "redriven to several origins at once",
    ),
    *("a move task cancelled", "a move task completed", "a move task taken up by another node"),
    *("configured", "configured after a node died"),
    *("a node died", "a clock was set", "hung up", "news lost", "an outage"),
    *(
        "retried",
        "delivered",
        "dropped",
        "a publication deduplicated",
        "an attempt made again by another node",
    ),
    *(
        "a batch of several",
        "taken late",
        "overdue",
        "a letter",
        "a rest begins",
        "a rest ends",
        "a probe",
        "paced",
    ),
    *("pushed: accepted", "pushed: server_error", "pushed: client_error"),
    *("call: hung", "call: request_lost", "call: answer_lost", "call: death_before", "call: death_after"),
}


@functools.cache
def well(seed: int) -> Result:
    """A run of the store as it is."""
    return simulate(seed, InMemory)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_rule_holds(first: int) -> None:
    for seed in range(first, first + CHUNK):
        well(seed)


def test_everything_that_is_simulated_happens() -> None:
    met: set[str] = set()
    for seed in range(SEEDS):
        met |= {mark for mark, times in well(seed).marks.items() if times}
        if met >= MARKS:
            return
    assert met >= MARKS, MARKS - met


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_store_with_one_thing_wrong_is_found_out(mutant: type[InMemory]) -> None:
    broken: list[Rule] = []
    seeds = chain([FIRST_SEEDS.get(mutant.__name__, 0)], count())
    fitting = (seed for seed in seeds if not mutant.needs or mutant.needs in draw(seed).dialects)
    for seed in islice(fitting, 50):
        try:
            simulate(seed, mutant)
        except Broken as failure:
            broken.append(failure.rule)
            if failure.rule is MUTANTS[mutant]:
                return
    pytest.fail(f"{mutant.__doc__} … and only this was noticed: {broken}")


def test_a_seed_gives_the_same_history_in_every_process() -> None:
    seed = 3
    here = simulate(seed, InMemory, lines=True)
    script = (
        "from tests.simulation.run import simulate; from tests.simulation.world import InMemory;"
        f"print(*simulate({seed}, InMemory, lines=True).lines, sep='\\n')"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1234"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.splitlines() == here.lines
    assert simulate(seed, InMemory).digest == here.digest


def test_different_seeds_give_different_histories() -> None:
    assert len({draw(seed) for seed in range(100)}) == 100
    assert simulate(1, InMemory).digest != simulate(2, InMemory).digest


def test_a_broken_run_tells_its_seed_and_what_happened() -> None:
    with pytest.raises(Broken, match=r"seed 0: .*--seed 0") as failure:
        simulate(0, next(store for store, rule in MUTANTS.items() if rule is Rule.EARLY), lines=True)
    assert len(failure.value.lines) > 10


def test_the_command_line_runs_one_and_many() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.simulation", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    one = run("--seed=1")
    assert (one.returncode, "every rule held" in one.stdout) == (0, True)
    many = run("--seeds=2", "--first=3", "--jobs=2")
    assert (many.returncode, "2 seeds, 0 broken" in many.stdout) == (0, True)
    broken = run("--seeds=1", "--jobs=1", "--mutant=Hasty")
    assert (broken.returncode, "BROKEN  seed " in broken.stdout) == (1, True)
