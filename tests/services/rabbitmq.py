"""RabbitMQ with its AMQP 1.0 plug-in, from Debian's package: one broker a test run. It takes 6 s to start.

Its node needs a port mapper, which otherwise would be left behind as a daemon; both have ports of their own, so that a
broker which the machine runs anyway is not met.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.services import companions
from tests.services.programs import free_port

_ADVICE: Final = "`make rabbitmq` installs Debian's package"
_SERVER: Final = "*/sbin/rabbitmq-server"
_LIBRARY: Final = Path("/usr/lib/rabbitmq/lib")


@dataclass(frozen=True, slots=True)
class RabbitMq:
    """A running broker.

    Attributes:
        port: Where it speaks AMQP.
    """

    port: int

    def url(self, user: str = "guest:guest", addresses: str = "/queue/") -> str:
        """Return the broker's URL; `/queue/` makes a queue of every name that is sent to."""
        return f"amqp://{user}@127.0.0.1:{self.port}{addresses}"


def shared_rabbitmq(run_directory: Path) -> RabbitMq:
    """The run's broker, started by whichever process asks first.

    Raises:
        CompanionMissingError: It is not installed.
    """
    return RabbitMq(int(companions.shared(run_directory, "rabbitmq", _start)["port"]))


def _start(directory: Path) -> Mapping[str, str]:
    # Not the one on the PATH, which runs as a user who may not write here.
    server = max(_LIBRARY.glob(_SERVER), default=None)
    if server is None:
        raise companions.CompanionMissingError(f"RabbitMQ is not installed: {_ADVICE}")
    port, mapper_port = free_port(), free_port()
    (directory / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    (directory / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
    mapper = directory / "mapper"
    mapper.mkdir()
    mapped = f"exec {companions.program('epmd', _ADVICE)} -d -port {mapper_port} 2>&1"
    companions.run(mapper, "/bin/sh", "-c", mapped, ready="running")
    companions.run(
        directory,
        str(server),
        ready="completed with",
        HOME=str(directory),
        ERL_EPMD_PORT=str(mapper_port),
        RABBITMQ_NODENAME=f"redrive-{port}@localhost",
        RABBITMQ_DIST_PORT=str(free_port()),
        RABBITMQ_MNESIA_BASE=str(directory),
        RABBITMQ_LOG_BASE=str(directory),
        RABBITMQ_CONFIG_FILE=str(directory / "rabbitmq.conf"),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(directory / "enabled_plugins"),
    )
    return {"port": str(port)}
