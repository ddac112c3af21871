"""The import contracts in pyproject.toml can fail: each forbidden direction, tried in a house of empty rooms.

Contracts name packages by wildcard, and one that no longer matches anything is kept silently.
"""

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.services.programs import Program
from tests.tidy import ROOT

_LINTER: Final = Program(
    "importlinter.cli:lint_imports_command",
    modules=("importlinter.cli",),
    command=(str(Path(sys.executable).with_name("lint-imports")),),
    environment=os.environ,
)

_ROOMS = (
    *("composition", "composition.core", "composition.sns", "composition.sqs", "composition.store"),
    *("cli", "app", "server", "console", "settings", "testing", "runtime", "telemetry", "functions"),
    *("azure", "azure.wire", "workers", "aws.iam", "aws.kms"),
    *("aws", "aws.encryption", "aws.gateway", "aws.kit", "aws.wire", "aws.wire.arn", "aws.sqs", "aws.sns"),
    *(
        "stores",
        "stores.sqlite",
        "stores.sqlite.store",
        "endpoints",
        "endpoints.http",
        "access",
        "access.keys",
    ),
    *("engine", "engine.ports", "engine.publish", "engine.resources", "model", "model.delivery"),
)

_ONE_WAY = "Imports run one way"
_PORTS_ONLY = "Adapters know of the engine only its ports"
_ONE_COMPOSER = "Only the composition root names a concrete store"
_EXTENSIONS_APART = "No extension knows another"
_ACCESS = "Access is checked by the services"
_SERVICES_APART = "No Amazon service knows another"
_CORE = "The core knows nothing of the cloud around it"
_DOOR = "Callers come by the engine's door"


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        ("model.delivery", "engine.ports", _ONE_WAY),
        ("engine.publish", "runtime", _ONE_WAY),
        ("aws.sqs", "server", _ONE_WAY),
        ("aws.sqs", "console", _ONE_WAY),
        ("aws.sqs", "telemetry", _ONE_WAY),
        ("endpoints.http", "functions", _ONE_WAY),
        ("server", "app", _ONE_WAY),
        ("app", "testing", _ONE_WAY),
        ("attic", "model", _ONE_WAY),
        ("endpoints.http", "engine.publish", _PORTS_ONLY),
        ("stores.sqlite.store", "engine.publish", _PORTS_ONLY),
        ("access.keys", "engine.publish", _PORTS_ONLY),
        ("cli", "stores.sqlite.store", _ONE_COMPOSER),
        ("app", "stores.sqlite.store", _ONE_COMPOSER),
        ("server", "composition.core", _ONE_WAY),
        ("composition.sns", "composition.sqs", _EXTENSIONS_APART),
        ("stores.sqlite.store", "access.keys", _ACCESS),
        ("aws.sns", "aws.sqs", _SERVICES_APART),
        ("aws.wire.arn", "aws.sqs", _SERVICES_APART),
        ("azure", "aws.wire.arn", _ONE_WAY),
        ("aws.encryption", "aws.kms", _SERVICES_APART),
        ("aws.gateway", "aws.iam", _SERVICES_APART),
        ("telemetry", "aws.iam", _ONE_WAY),
        ("endpoints.http", "aws.iam", _ONE_WAY),
        ("server", "aws.iam", _CORE),
        ("settings", "aws.sns", _CORE),
        ("workers", "aws.kms", _CORE),
        ("server", "functions", _CORE),
        ("aws.sqs", "engine.publish", _DOOR),
        ("azure.wire", "engine.publish", _DOOR),
        ("server", "engine.publish", _DOOR),
        ("cli", "engine.publish", _DOOR),
    ],
)
def test_a_wrong_import_breaks_its_contract(
    tmp_path: Path, importer: str, imported: str, contract: str
) -> None:
    assert f"{contract} BROKEN" in _check_imports(tmp_path, {importer: imported})


def test_the_right_imports_keep_every_contract(tmp_path: Path) -> None:
    report = _check_imports(
        tmp_path,
        {
            "testing": "app",
            "cli": "app",
            "app": "composition.sns",
            "composition.sns": "composition.core",
            "composition.store": "stores.sqlite.store",
            "server": "settings",
            "aws.sqs": "aws.wire.arn",
            "aws.sns": "aws.kit.call",
            "aws.kit.call": "access.keys",
            "azure": "model.delivery",
            "azure.wire": "engine.resources",
            "engine.resources": "engine.publish",
            "stores.sqlite.store": "engine.ports",
            "endpoints.http": "model.delivery",
            "engine.publish": "engine.ports",
            "engine.ports": "model.delivery",
        },
    )
    assert "0 broken" in report


def _check_imports(folder: Path, imports: dict[str, str]) -> str:
    """Return the output of the import linter for a `redrive` of empty packages with these imports between them."""
    for room in {"", *_ROOMS, *imports}:
        package = folder.joinpath("redrive", *room.split("."))
        package.mkdir(parents=True, exist_ok=True)
        wanted = imports.get(room)
        (package / "__init__.py").write_text(f"import redrive.{wanted}\n" if wanted else "")
    environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb"}
    return _LINTER.run(("--no-cache", f"--config={ROOT / 'pyproject.toml'}"), environment, folder).stdout
