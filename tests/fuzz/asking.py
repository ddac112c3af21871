"""Random requests of every kind: each offered operation of Amazon's services, Event Grid, own routes and the console.

Of four requests one is left as the SDK makes it, so that the store fills; the others are bent in a value, in the head or
in the bytes.
"""

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson

from redrive.aws.wire.profiles import profile_of, profiles
from redrive.console import PATH as CONSOLE
from redrive.console.routes import ROUTES
from redrive.model.http import Request, Response
from tests.aws.wire.clients import Client
from tests.fuzz.bending import bent, bent_request, junk
from tests.fuzz.grid_documents import CLOUD_EVENT, CUSTOM_EVENT, EVENT, documents_of
from tests.fuzz.grid_world import GROUP, PROVIDER, SUBSCRIPTION
from tests.fuzz.learning import START, Learner, first_steps

#: The protocols of each service.
PROTOCOLS: Final[Mapping[str, Sequence[str]]] = {
    service: sorted(profile.protocols) for service, profile in profiles().items()
}
_SIGNED: Final = (
    "AWS4-HMAC-SHA256 Credential=000000000000/20260101/us-east-1/{}/aws4_request, SignedHeaders=host,"
    " Signature=0"
)
#: Operations that wait, or run processes, and would be most of a run's time: one of so many is asked.
_RARE: Final = {
    "Invoke": 30,
    "InvokeAsync": 30,
    "ReceiveMessage": 2,
    "GenerateDataKeyPair": 10,
    "CreateKey": 4,
}
_ENDS: Final = ("Delete", "Remove", "Schedule", "Disable", "Purge", "Untag", "Revoke", "Retire", "Detach")
_ENDINGS: Final = 5
_AGAIN: Final = 800  # requests after which the first steps are made again
_OWN: Final = (
    *("health", "metrics", "clock", "faults", "trace", "queues", "topics", "endpoints", "dead-letters"),
    *(
        "dead-letter-queues",
        "dead-letter-causes",
        "dead-letter-plans",
        "dead-letter-tasks",
        "dead-letter-edits",
    ),
    *(
        "dead-letters-set-aside",
        "dead-letters-brought-back",
        "cloudformation/x",
        "function-url/x",
        "function-code/x",
    ),
)
_STANDING: Final[Mapping[str, Sequence[str]]] = {
    "subscription": (SUBSCRIPTION,),
    "group": ("rg", "RG"),
    "provider": ("Microsoft.EventGrid", "Microsoft.Storage"),
    "storageAccount": ("letters",),
    "container": ("dead",),
    "location": ("local",),
    "topicType": ("Microsoft.EventGrid.Topics",),
}
#: Answers of 5xx that are no fault: what is not offered, and integrations of APIs that lead nowhere.
_EXPECTED: Final = (501, 502, 503, 504)
_ARM_VERSION: Final = "api-version=2025-02-15"
_ARM_HEADERS: Final = {"host": "localhost", "authorization": "Bearer x", "content-type": "application/json"}
_HERE: Final = {"location": "local"}
_SKU: Final = {**_HERE, "sku": {"name": "Standard", "capacity": 1}}
_PULLED: Final = {"properties": {"deliveryConfiguration": {"deliveryMode": "Queue"}}}
_GRID_BEGINS: Final[Sequence[tuple[str, Any]]] = (
    (GROUP, _HERE),
    (f"{PROVIDER}/topics/topic1", {**_HERE, "properties": {}}),
    (f"{PROVIDER}/topics/topic2", {**_HERE, "properties": {"inputSchema": "CloudEventSchemaV1_0"}}),
    (f"{PROVIDER}/domains/domain1", {**_HERE, "properties": {}}),
    (f"{PROVIDER}/namespaces/namespace1", _SKU),
    (f"{PROVIDER}/namespaces/namespace1/topics/topic1", {"properties": {}}),
    (f"{PROVIDER}/namespaces/namespace1/topics/topic1/eventSubscriptions/eventsubscription1", _PULLED),
)
_EVENTS: Final[Sequence[Any]] = ([EVENT], CLOUD_EVENT, [CLOUD_EVENT], [CUSTOM_EVENT])


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what it was made of.

    Attributes:
        kind: The service, or what stands for one.
        operation: Of the service.
        params: As the SDK had them; None: it is not an SDK's.
        client: Reads the answer.
        request: As it is sent.
    """

    kind: str
    operation: str
    params: Mapping[str, Any] | None
    client: Client | None
    request: Request

    def is_failed_by(self, response: Response) -> bool:
        """True for an answer that no request may get: an API's own 500 is its integration's, as at AWS."""
        return response.status >= 500 and response.status not in _EXPECTED and self.kind != "apis"


class Asking:
    """Makes requests, and learns from the answers."""

    def __init__(self, seed: int, operations: Mapping[str, Sequence[str]], routes: Sequence[str]) -> None:
        """Begin.

        Args:
            seed: Seeds all random numbers.
            operations: Those that the server offers, by service.
            routes: Method and pattern of the resource manager's.
        """
        self._rng = random.Random(seed)
        self._learner = Learner(self._rng, START)
        self._clients = {
            service: [Client(service, protocol) for protocol in protocols]
            for service, protocols in PROTOCOLS.items()
        }
        self._operations = [
            (service, operation)
            for service, clients in self._clients.items()
            for operation in operations[service]
            if operation in clients[0].operations
        ]
        self._routes = routes
        self._begin: list[tuple[str, str, Mapping[str, Any]]] = []
        self._grid_begins: list[tuple[str, Any]] = []
        self._made = 0
        #: Requests by kind, and those of them that were carried out.
        self.asked: Counter[str] = Counter()
        self.carried_out: Counter[str] = Counter()
        self.operations_carried_out: set[str] = set()

    @property
    def operations(self) -> int:
        """The number of operations that are asked for."""
        return len(self._operations)

    def next(self) -> Asked:
        """Another request."""
        if self._made % _AGAIN == 0:  # much of it was deleted meanwhile
            self._begin, self._grid_begins = first_steps(), list(_GRID_BEGINS)
        self._made += 1
        if self._begin:
            service, operation, params = self._begin.pop(0)
            return self._of_service(service, operation, dict(params), bend=False)
        if self._grid_begins:
            path, document = self._grid_begins.pop(0)
            request = Request("PUT", path, _ARM_VERSION, _ARM_HEADERS, _json(document))
            return Asked("eventgrid", "PUT", None, None, request)
        kind = self._rng.random()
        if kind < 0.74:
            service, operation = self._operation()
            shape = self._clients[service][0].service.operation(operation).input
            return self._of_service(service, operation, self._learner.params(shape), bend=True)
        if kind < 0.86:
            return self._of_grid()
        return self._of_own() if kind < 0.93 else self._of_page()

    def answered(self, asked: Asked, response: Response) -> None:
        """Learn from an answer."""
        self.asked[asked.kind] += 1
        if not 200 <= response.status < 300:
            return
        self.carried_out[asked.kind] += 1
        self.operations_carried_out.add(f"{asked.kind} {asked.operation}")
        answer: Any = {}
        try:
            if asked.client is not None:
                answer = asked.client.answer(asked.operation, response)
            elif response.content_type.startswith("application/json"):
                answer = orjson.loads(response.body)
        except Exception:  # noqa: BLE001 - a bent request may be another one, whose answer this parser cannot read
            return
        self._learner.learn(asked.operation, asked.params or {}, answer)

    # ---- Amazon's ----------------------------------------------------------------------------------------

    def _operation(self) -> tuple[str, str]:
        while True:
            service, operation = self._rng.choice(self._operations)
            rare = _ENDINGS if operation.startswith(_ENDS) else _RARE.get(operation, 1)
            if self._rng.randrange(rare) == 0:
                return service, operation

    def _of_service(self, service: str, operation: str, params: dict[str, Any], *, bend: bool) -> Asked:
        rng = self._rng
        if "WaitTimeSeconds" in params:
            params["WaitTimeSeconds"] = 0
        client = rng.choice(self._clients[service])
        way = rng.randrange(4) if bend else 0
        if way == 1:
            for _ in range(rng.randrange(1, 3)):
                params = bent(rng, params)
        try:
            request = client.request(operation, params)
        except Exception:  # noqa: BLE001 - what no serialiser takes is bent in the text instead
            params = {}
            request = client.request(operation, params)
        signed = {"authorization": _SIGNED.format(profile_of(service).endpoint_prefix)}
        sent: Any = request.body  # the serialiser hands a bent payload on as it is
        body = sent if isinstance(sent, bytes) else _json(sent)
        request = replace(request, headers={**request.headers, **signed}, body=body)
        document = _object_of(request.body) if way == 2 else None
        if document is not None:
            request = replace(request, body=_json(bent(rng, document)))
        elif way >= 2:
            request = bent_request(rng, request)
        return Asked(service, operation, params, client, request)

    # ---- Event Grid --------------------------------------------------------------------------------------

    def _of_grid(self) -> Asked:
        rng = self._rng
        if rng.randrange(4) == 0:
            return self._publication()
        route = rng.choice(self._routes)
        if route.startswith("DELETE") and rng.randrange(_ENDINGS):
            return self._publication()
        method, _, pattern = route.partition(" ")
        path = re.sub(r"\{(\w+)(\.\.\.)?\}", lambda found: self._place(found[1]), pattern)
        body = b""
        if method in ("PUT", "PATCH") or route.endswith("Key"):
            document = copy.deepcopy(rng.choice(documents_of(method, pattern)))
            body = _json(bent(rng, document) if rng.randrange(2) else document)
        request = Request(method, path, _ARM_VERSION, _ARM_HEADERS, body)
        if rng.randrange(4) == 0:
            request = bent_request(rng, request)
        return Asked("eventgrid", route, None, None, request)

    def _place(self, name: str) -> str:
        standing = _STANDING.get(name)
        if standing is None:
            standing = [f"{name.lower()}1", f"{name.lower()}2"]
        if self._rng.randrange(40) == 0:
            return quote(str(junk(self._rng)).encode(errors="surrogatepass"), safe="") or "x"
        return self._rng.choice(standing)

    def _publication(self) -> Asked:
        rng = self._rng
        kind, name = rng.choice([("", "topic1"), ("", "topic2"), ("domains/", "domain1"), ("", "namespace1")])
        cloud = name in ("topic2", "namespace1")
        document: Any = copy.deepcopy(CLOUD_EVENT if cloud else [EVENT])
        if rng.randrange(4) == 0:
            document = copy.deepcopy(rng.choice(_EVENTS))
        if rng.randrange(2):
            document = bent(rng, document)
        path = f"/eventgrid/{SUBSCRIPTION}/rg/{kind}{name}/api/events"
        if name.startswith("namespace"):
            verb = rng.choice(["receive", "acknowledge", "release", "reject", "renewLock"])
            path = f"/eventgrid/{SUBSCRIPTION}/rg/{name}/topics/topic1"
            path += rng.choice([":publish", f"/eventsubscriptions/eventsubscription1:{verb}"])
            if verb != "receive" and not path.endswith("publish"):
                document = {"lockTokens": [self._learner.known("lockToken") or "x"]}
        types = ("application/json", "application/cloudevents+json", "application/cloudevents-batch+json")
        key = self._learner.known("key1") or "x"
        content_type = rng.choice(types) if rng.randrange(3) == 0 else types[cloud]
        headers = {"host": "localhost", "content-type": content_type, "aeg-sas-key": key}
        headers["authorization"] = "Bearer x"
        request = Request("POST", path, "api-version=2024-06-01&maxWaitTime=10", headers, _json(document))
        if rng.randrange(5) == 0:
            request = bent_request(rng, request)
        return Asked("eventgrid data", path.rpartition(":")[2], None, None, request)

    # ---- the own ones ------------------------------------------------------------------------------------

    def _of_own(self) -> Asked:
        rng = self._rng
        name = rng.choice(_OWN)
        values = {
            "queue": self._learner.known("QueueName") or "n1",
            "endpoint": "arn:aws:sqs:us-east-1:000000000000:none",
            "limit": rng.choice(["1", "0", "x", "100000"]),
            "message": self._learner.known("MessageId") or "m",
            rng.choice(["status", "rests", "seconds", "cause", "after", "seqs"]): str(junk(rng))[:200],
        }
        chosen = {key: value for key, value in values.items() if rng.randrange(2)}
        query = urlencode(chosen, errors="surrogatepass")
        headers = {"host": "localhost", "authorization": _SIGNED.format("sqs")}
        method = rng.choice(["GET", "GET", "POST", "DELETE", "PUT"])
        body = b"" if method == "GET" else _json(bent(rng, dict(chosen)))
        return Asked("own", name, None, None, Request(method, f"/_redrive/{name}", query, headers, body))

    def _of_page(self) -> Asked:
        rng = self._rng
        if rng.randrange(3) == 0:
            return self._of_api()
        route = rng.choice(ROUTES)
        path = re.sub(r"\{(\w+)\}", lambda found: self._part(found[1]), route.pattern)
        fields = {
            name: str(junk(rng))[:300] if rng.randrange(2) else rng.choice(["1", "a", "n1", "on"])
            for name in rng.sample(
                ["body", "q", "since", "sort", "name", "token", "pace", "at", "group", "alarm"], 3
            )
        }
        form = urlencode(fields, errors="surrogatepass")
        headers = {"host": "localhost"}
        if route.method == "GET":
            return Asked(
                "console", route.pattern, None, None, Request("GET", CONSOLE + path, form, headers, b"")
            )
        headers |= {"content-type": "application/x-www-form-urlencoded", "origin": "http://localhost"}
        headers["sec-fetch-site"] = "same-origin"
        return Asked(
            "console", route.pattern, None, None, Request("POST", CONSOLE + path, "", headers, form.encode())
        )

    def _part(self, name: str) -> str:
        known = {
            "account": "000000000000",
            "region": "us-east-1",
            "queue": self._learner.known("QueueName") or "n1",
            "topic": "n1",
            "function": self._learner.known("FunctionName") or "f1",
            "stack": self._learner.known("StackName") or "stack1",
            "key": self._learner.known("KeyId") or "k",
            "seq": self._rng.choice(["1", "2", "99999999999999999999", "x", "-1"]),
        }
        text = known.get(name, "x") if self._rng.randrange(12) else str(junk(self._rng))
        return quote(str(text).encode(errors="surrogatepass"), safe="") or "x"

    def _of_api(self) -> Asked:
        """A request of an API that is offered there, and of an object by its path."""
        rng = self._rng
        api, stage = "rental", "prod"
        if rng.randrange(3) == 0:
            api = self._learner.known(rng.choice(["restApiId", "ApiId"])) or "x"
            stage = self._learner.known("stageName") or "$default"
        path = rng.choice(
            [f"/_aws/execute-api/{api}/{stage}/cars", f"/restapis/{api}/{stage}/_user_request_/a"]
        )
        method = rng.choice(["GET", "POST", "PUT"])
        headers = {"host": "localhost", "content-type": "application/json"}
        request = Request(method, path, "a=b", headers, _json(junk(rng)) if method != "GET" else b"")
        if rng.randrange(2):
            request = bent_request(rng, request)
        return Asked("apis", "request", None, None, request)


def _object_of(body: bytes) -> Any:
    """The JSON object that a body is, even with half a surrogate pair, which orjson refuses; None: it is none."""
    try:
        return json.loads(body) if body[:1] == b"{" else None
    except ValueError:  # a payload in bytes may begin like one
        return None


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, default=repr).encode(errors="surrogatepass")
