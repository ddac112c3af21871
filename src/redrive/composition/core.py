"""The core: what stands before any facade does, and what each of them is built on."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redrive.access.keys import ANY_ACCOUNT, Keyring, chosen_access_key
from redrive.access.refusals import Refusals
from redrive.access.secret import InstallationSecret, SessionTokens
from redrive.access.signing_pair import SigningPair
from redrive.aws.encryption.data_keys import RootKey
from redrive.aws.gateway.authentication import Authentication, Holders, SigV4Verifier, TrustAll
from redrive.aws.gateway.identities import Identities, Sessions
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Facade
from redrive.aws.kit.service import UnopenedService
from redrive.aws.sqs.consumers import Consumers
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.engine.engine import Engine
from redrive.engine.ports import Clock, Endpoint, NodeStore, Runtime
from redrive.engine.resources import Documents
from redrive.runtime.machine import SystemClock
from redrive.server.siblings import ALONE, Siblings
from redrive.settings import (
    Origin,
    Settings,
    SettingsInvalid,
    aws_endpoint_of,
    read_aws_endpoints,
    read_networks,
)
from redrive.telemetry.audit import AuditTrail
from redrive.telemetry.meters import NodeMeters
from redrive.telemetry.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The parts that each facade is built on."""

    settings: Settings  # The server's
    runtime: Runtime  # Clock, which may be simulated, and random numbers
    store: NodeStore  # Open
    engine: Engine  # Connected to the store, not open yet
    telemetry: Telemetry  # Takes what is counted and logged
    meters: NodeMeters  # This node's, for its exposition
    web: HttpEndpoint  # Makes requests to webhooks, within what the settings allow
    keyring: Keyring  # The access keys
    sessions: Sessions  # Begins sessions: temporary credentials, also for what this server runs for a role
    authentication: Authentication  # Tells who calls Amazon's services, and Redrive's own routes
    refusals: Refusals  # Counts the requests of those who are not let in
    pair: SigningPair  # The installation's key
    secret: InstallationSecret  # The installation's secret
    root_key: RootKey  # Wraps the material of KMS's keys
    seal_by: Callable[[bytes], RootKey]  # Seals with a key of 32 bytes that lies elsewhere
    base_url: str  # Prefix of links to this server
    stream: str  # The stream of this node in every log group
    audit: AuditTrail  # Trail of changes by the console and by Redrive's own routes
    origins: Sequence[Origin] = ()  # Source of each setting, where known
    consumers: Consumers = field(default_factory=Consumers)  # Who receives from queues on this node
    siblings: Siblings = ALONE  # The processes that serve the same address
    # Amazon's services, by botocore's names: complete once all extensions are made, and called from then on.
    services: dict[str, Facade | UnopenedService] = field(default_factory=dict)

    @property
    def calls(self) -> InnerCalls:
        """Calls to these services from within."""
        return InnerCalls(self.services, self.runtime)

    @property
    def public_url(self) -> str | None:
        """The beginning of URLs in answers; None for the host that the client used."""
        return self.settings.public_url.rstrip("/") or None

    @property
    def ca_file(self) -> Path | None:
        """Certificates that endpoints may show besides the system's."""
        return trusted_ca_file(self.settings)


def trusted_ca_file(settings: Settings) -> Path | None:
    """The file of certificates that endpoints may show, loaded once here, so that a fault shows before the first push.

    Raises:
        SettingsInvalid: The file cannot be read, or has none in it.
    """
    file = settings.endpoint_ca_file
    if not file:
        return None
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError as error:
        raise SettingsInvalid(f"endpoint_ca_file {file} holds no certificates in PEM") from error
    except OSError as error:
        raise SettingsInvalid(f"cannot read endpoint_ca_file {file}: {error.strerror}") from error
    return Path(file)


def web_endpoint(settings: Settings, runtime: Runtime) -> HttpEndpoint:
    """The endpoint that makes requests to webhooks."""
    policy = HttpPolicy(
        forbids_private=settings.forbids_private,
        private_networks=read_networks(settings.allow_private_endpoints),
        ca_file=trusted_ca_file(settings),
    )
    return HttpEndpoint(SystemClock().now, runtime.rng, policy)


def make_keyring(settings: Settings, store: NodeStore, time: Clock) -> Keyring:
    """The access keys of a store, and the key `test` where the settings accept it."""
    test = chosen_access_key(ANY_ACCOUNT, "test", "test", SystemClock().now())
    return Keyring(store, SystemClock(), [test] if settings.insecure_test_keys else (), time)


def make_sessions(
    settings: Settings, documents: Documents, secret: InstallationSecret, runtime: Runtime
) -> Sessions:
    """Begins sessions of users and roles, whose policies count where signatures are required."""
    identities = Identities(documents, restricts=settings.auth == "required")
    return Sessions(SessionTokens(secret), identities, runtime)


def make_authentication(
    settings: Settings, keyring: Keyring, sessions: Sessions, refusals: Refusals
) -> Authentication:
    """The authentication of callers of Amazon's services; whom it refuses is counted."""
    holders = Holders(keyring, sessions.identities, sessions.tokens, sessions.runtime.clock)
    if settings.auth == "off":
        return TrustAll(settings.region, holders)
    return SigV4Verifier(holders, SystemClock(), refusals, settings.region)


def remote_endpoints(core: Core, endpoint: Endpoint | None) -> Callable[[str], Endpoint | None]:
    """A function of ARNs: the endpoint for those that the settings put on another server, None for all others."""
    addresses = read_aws_endpoints(core.settings.aws_endpoints)
    return lambda arn: None if aws_endpoint_of(addresses, arn) is None else endpoint
