"""The door for publishers: events posted to a topic or a domain.

    POST /eventgrid/{subscription}/{group}/{topic}/api/events
    POST /eventgrid/{subscription}/{group}/domains/{domain}/api/events
    POST https://{topic or domain}.{region}.eventgrid.{…}/api/events        where that name leads here

All events of a request are taken or none. The answer is 200 without a body: clients take any other for a failure.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from redrive.azure.eventgrid import names, refusals
from redrive.azure.eventgrid.credentials import GuardedResource, NotAdmitted, PublisherCredentials
from redrive.azure.eventgrid.incoming import Incoming, read_cloud_events, read_custom_events, read_events
from redrive.azure.eventgrid.measures import Measures
from redrive.azure.eventgrid.names import HostNames
from redrive.azure.eventgrid.notation import written_text
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.refusals import Unacceptable, not_admitted, out_of_network, too_large
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    CUSTOM_EVENT_SCHEMA,
    KEYS,
    TopicSettings,
    topic_settings,
)
from redrive.azure.recognise import EVENT_GRID, EVENTS, is_publishing
from redrive.azure.wire.answers import empty_answer, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.azure.wire.routes import RouteTable
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Topics
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName, bytes_of, id_text
from redrive.model.topic import Publication, Topic

# The documented megabyte, as the service was measured to count it (2025).
REQUEST_BYTES_MAX: Final = 1_536_000
EVENT_BYTES_MAX: Final = 1_049_600

_OF_TOPIC: Final = "/eventgrid/{subscription}/{group}/{topic}/api/events"
_OF_DOMAIN: Final = "/eventgrid/{subscription}/{group}/domains/{domain}/api/events"
_PROVIDER: Final = "Microsoft.EventGrid"
_METHODS: Final = "POST, OPTIONS"
_KINDS: Final = ("topics", "domains")
_READ_AT_ONCE: Final = 500  # topics


class Publishers:
    """Publishing to topics and domains (`redrive.azure.gateway.Service`)."""

    def __init__(self, engine: Engine, credentials: PublisherCredentials, measures: Measures) -> None:
        self._engine = engine
        self._topics = engine.resources.topics
        self._credentials = credentials
        self._measures = measures
        self._routes: RouteTable[str] = RouteTable(
            {
                f"{method} {pattern}": kind
                for method in ("POST", "OPTIONS")
                for pattern, kind in ((_OF_DOMAIN, "domains"), (_OF_TOPIC, "topics"))
            }
        )
        self._names: dict[str, ResourceName] = {}
        self._hosts = HostNames(engine.resources.documents, self._host_names)

    @property
    def routes(self) -> list[str]:
        """Method and pattern of every route."""
        return self._routes.names

    def handles(self, path: str, host: str) -> bool:
        """See `Service.handles`."""
        return is_publishing(path, host)

    async def answer(self, request: Request) -> Response:
        """Publish the events of a request, or answer a handshake (`Service.answer`); refusals are counted."""
        name = await self._name(request)
        topic = None if name is None else self._topics.known(name) or await self._topics.get(name)
        now = self._engine.clock.now()
        try:
            if self._credentials.required:
                await self._admit(request, name, topic)
            if not topic:
                raise not_found("The specified resource does not exist.", "NotFound")
            return await self._answer(request, topic, now)
        except Unacceptable as refusal:
            if topic:
                self._measures.refused(topic, refusal, now)
            raise refusal.to_error(id_text(self._engine.runtime.message_id()), now) from refusal

    async def _admit(self, request: Request, name: ResourceName | None, topic: Topic | None) -> None:
        """Let a request pass that brings what opens the topic; one that does not exist is opened by no key."""
        settings = None if topic is None else topic_settings(topic)
        attributes = {} if topic is None else topic.attributes
        resource = GuardedResource(
            account="" if name is None else name.account,
            keys=[attributes[key] for key in KEYS if key in attributes],
            path=request.path,
            name="" if name is None else name.name.rpartition(":")[2],
            path_at_host=EVENTS,
            id="" if settings is None else settings.id,
            takes_keys=settings is None or not settings.local_auth_disabled,
        )
        try:
            await self._credentials.check(request, resource)
        except NotAdmitted as refusal:
            raise not_admitted(refusal, request.host) from refusal

    async def _answer(self, request: Request, topic: Topic, now: int) -> Response:
        """Answer a request that was let in by its credentials; its address is checked here."""
        settings = topic_settings(topic)
        if not settings.network.admits(request.client_host):
            raise out_of_network(request.host, request.client_host)
        if request.method == "OPTIONS":
            return empty_answer(headers=_options(settings))
        if request.method != "POST":
            message = f"The method {request.method} is not allowed."
            raise Unacceptable(message, "MethodNotAllowed", HTTPStatus.METHOD_NOT_ALLOWED)
        await self._publish(request, topic, settings, now)
        end = self._engine.clock.now()
        self._measures.answered(topic, end - now, end)
        return empty_answer(headers=_VERSIONS)

    # ---- the events -------------------------------------------------------------------------------------

    async def _publish(self, request: Request, topic: Topic, settings: TopicSettings, now: int) -> None:
        """Publish the events of a request, to a domain also to its topics; raises Unacceptable."""
        if len(request.body) > REQUEST_BYTES_MAX:
            raise too_large(REQUEST_BYTES_MAX)
        in_domain = topic.name.name.startswith("domains:")
        events = self._read(request, settings, now, in_domain=in_domain)
        _write(events)
        if len(request.body) > EVENT_BYTES_MAX and any(
            bytes_of(each.text) > EVENT_BYTES_MAX for each in events
        ):
            raise too_large(EVENT_BYTES_MAX)
        publications = self._publications(events, settings, now)
        messages = self._engine.messages
        if in_domain:
            await messages.publish_each(await self._with_domain_topics(topic, events, publications))
        else:
            await messages.publish(topic, publications)

    def _read(
        self, request: Request, settings: TopicSettings, now: int, *, in_domain: bool
    ) -> Sequence[Incoming]:
        """The events of a request in the topic's input schema; raises Unacceptable."""
        if settings.input_schema == CLOUD_EVENT_SCHEMA:
            return read_cloud_events(request.body, request.headers)
        if settings.input_schema == CUSTOM_EVENT_SCHEMA:
            return read_custom_events(request.body, settings, now, self._new_id, in_domain=in_domain)
        return read_events(request.body, settings.id, in_domain=in_domain)

    def _publications(
        self, events: Sequence[Incoming], settings: TopicSettings, now: int
    ) -> list[Publication]:
        """The publications of events, with one envelope for all but custom events, each mapped in its own way."""
        shared = PublishedEvent(settings.input_schema, settings.id, now).envelope()
        message_id = self._engine.runtime.message_id
        return [
            Publication(
                id=message_id(),
                body=each.text,
                bodies={},
                attributes={},
                envelope=_own_envelope(each, settings, now) if each.mapped else shared,
                bytes_published=bytes_of(each.text),
                document=each.document,
            )
            for each in events
        ]

    async def _with_domain_topics(
        self, domain: Topic, events: Sequence[Incoming], publications: Sequence[Publication]
    ) -> list[tuple[Topic, Sequence[Publication]]]:
        """The events for a domain, which gets all, and for those of its topics that exist."""
        by_place: dict[str, list[Publication]] = {}
        for event, publication in zip(events, publications, strict=True):
            if event.domain_topic is not None and names.is_name(event.domain_topic):
                by_place.setdefault(event.domain_topic.lower(), []).append(publication)
        pairs: list[tuple[Topic, Sequence[Publication]]] = [(domain, publications)]
        for topic_name, topic_publications in by_place.items():
            name = domain.name._replace(name=f"{domain.name.name}:{topic_name}")
            topic = self._topics.known(name) or await self._topics.get(name)
            if topic is not None:
                pairs.append((topic, topic_publications))
        return pairs

    def _new_id(self) -> str:
        return id_text(self._engine.runtime.message_id())

    # ---- the topic --------------------------------------------------------------------------------------

    async def _name(self, request: Request) -> ResourceName | None:
        """The name of the topic or domain that a request is for; None: there can be none."""
        if request.path.lower().startswith(EVENT_GRID):
            return self._name_in(request.path)
        return await self._hosts.find(request.host, self._exists)

    def _name_in(self, path: str) -> ResourceName | None:
        """The topic or domain that a path names, which is remembered; None: it names none."""
        name = self._names.get(path)
        if name is not None:
            return name
        route_match = self._routes.find("POST", path)
        if (
            route_match is None
            or route_match.verb is None
            or not all(map(names.is_name, route_match.params.values()))
        ):
            return None
        params = route_match.params
        own_name = params.get("domain") or params.get("topic") or ""
        resource = ArmId(params["subscription"], params["group"], _PROVIDER, (route_match.verb, own_name))
        name = names.topic_name(resource)
        if name is not None and len(self._names) < _NAMES_MAX:
            self._names[path] = name
        return name

    async def _host_names(self) -> list[names.HostClaim]:
        """The hosts of all topics and domains."""
        hosts: list[names.HostClaim] = []
        after = ""
        while topics := await self._topics.all_after(after, _READ_AT_ONCE):
            for topic in topics:
                kind, _, own_name = topic.name.name.partition(":")
                if topic.dialect == names.DIALECT and kind in _KINDS and ":" not in own_name:
                    hosts.append(names.HostClaim(topic.created_at, own_name, topic.name))
            after = topics[-1].name.key
        return hosts

    async def _exists(self, name: ResourceName) -> bool:
        return await self._topics.get(name) is not None


_NAMES_MAX: Final = 10_000
_VERSIONS: Final = {"api-supported-versions": "2018-01-01"}


def _options(settings: TopicSettings) -> dict[str, str]:
    schema = refusals.SCHEMA_NAMES[settings.input_schema]
    return {"Allow": _METHODS, "aeg-input-event-schema": schema, **_VERSIONS}


def _write(events: Sequence[Incoming]) -> None:
    """Spell the events out as they will be kept."""
    try:
        for event in events:
            event.text = written_text(event.body)
    except ValueError as error:
        raise Unacceptable(f"An event cannot be kept: {error}.") from error


def _own_envelope(event: Incoming, settings: TopicSettings, now: int) -> bytes:
    return PublishedEvent(settings.input_schema, settings.id, now, event.mapped).envelope()


# Topics of this server as destinations: whether an event can go there.
#
# The event is published there by the transaction that ends its delivery; see `EventProfile.follow_ups`.


class TopicEndpoint:
    """Takes an event where its topic stands (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    async def push(self, push_request: PushRequest) -> Attempt:
        """Say whether it can go there."""
        resource = ArmId.parse(push_request.endpoint)
        name = None if resource is None else names.topic_name(resource)
        topic = None if name is None else await self._topics.get(name)
        return _MISSING if topic is None else _TAKEN

    async def close(self) -> None:
        """There is nothing to let go of."""


_TAKEN: Final = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "")
_MISSING: Final = Attempt(
    AttemptResult.FAILED, Reason.MISSING, HTTPStatus.NOT_FOUND, "The topic does not exist."
)
