"""The count of runs in a row that a trace header carries."""

import random

from redrive.access.secret import InstallationSecret
from redrive.aws.gateway.rounds import Rounds

_ROUNDS = Rounds(InstallationSecret(b"k" * 32), random.Random(1))
_ROOT = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"


def test_a_following_run_counts_one_more_and_stays_in_its_trace() -> None:
    first = _ROUNDS.following(_ROOT)
    assert first.startswith(f"{_ROOT};Lineage=1:")
    assert [_ROUNDS.of(first), _ROUNDS.of(_ROUNDS.following(first))] == [1, 2]
    assert _ROUNDS.following(first).count("Lineage") == 1
    assert _ROUNDS.of(_ROUNDS.following(None)) == 1


def test_a_count_without_the_servers_tag_is_not_believed() -> None:
    forged = f"{_ROOT};Lineage=16:{'0' * 32}"
    assert _ROUNDS.of(forged) == 0
    assert _ROUNDS.of(_ROUNDS.following(forged)) == 1
