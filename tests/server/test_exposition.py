"""Metrics in Prometheus's text format."""

from redrive import __version__
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.runtime.chance import real_runtime
from redrive.server.exposition import exposition
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import SimulatedClock


async def test_every_family_says_what_it_is_and_the_version_is_told() -> None:
    runtime: Runtime = real_runtime(SimulatedClock(0))
    engine = Engine(SqliteStore(None), runtime)
    await engine.open()
    refused = {"SignatureDoesNotMatch": 2, "BearerTokenInvalid": 1}
    lines = (await exposition(engine, lambda: (), refused)).body.decode().splitlines()
    await engine.close()
    types = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    helps = [line.split()[2] for line in lines if line.startswith("# HELP ")]
    assert types == helps
    assert len(set(types)) == len(types) > 2
    assert 'redrive_requests_refused_total{reason="BearerTokenInvalid"} 1' in lines
    assert 'redrive_requests_refused_total{reason="SignatureDoesNotMatch"} 2' in lines
    assert f'redrive_build_info{{version="{__version__}"}} 1' in lines
