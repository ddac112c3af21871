"""A server that trusts every caller: programs pass, and what a web page causes does not."""

from typing import Final

import orjson
import pytest

from redrive.model.http import Request
from redrive.server.guard import BrowserGuard, KnownHosts

HERE: Final = "127.0.0.1:4566"
CHROME: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0"
FORM: Final = "application/x-www-form-urlencoded"
CREATE: Final = "Action=CreateTopic&Name=x"


class Refused:
    def __init__(self) -> None:
        self.reasons: list[tuple[str, str]] = []

    def add(self, reason: str, *, address: str, identity: str) -> None:
        self.reasons.append((reason, identity))


def asked(
    method: str = "GET", path: str = "/", query: str = "", *, host: str = HERE, **headers: str
) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, query, {"host": host, **named}, b"")


def passes(request: Request) -> bool:
    refused = Refused()
    answer = BrowserGuard(KnownHosts(), refused).refusal(request)
    assert (answer is None) is (not refused.reasons)
    return answer is None


PROGRAMS: Final = {
    "an SDK's JSON": asked("POST", x_amz_target="AmazonSQS.ListQueues", user_agent="Boto3/1.44"),
    "an SDK's form": asked("POST", content_type=FORM, user_agent="aws-cli/2.1"),
    "curl, by a query": asked(query=CREATE, user_agent="curl/8.5", accept="*/*"),
    "Node's fetch": asked("POST", sec_fetch_mode="cors", user_agent="node"),
    "PowerShell's": asked(
        "POST", "/eventgrid/1/2/3/api/events", user_agent="Mozilla/5.0 (Windows NT) PowerShell/7.4"
    ),
    "the Azure CLI": asked("PUT", "/subscriptions/1", "api-version=2022-06-15", user_agent="AZURECLI/2.60"),
    "a container": asked("POST", host="redrive:4566"),
    "Docker Desktop": asked("POST", host="host.docker.internal:4566"),
    "an HTTP/1.0 client": Request("POST", "/", "", {}, b""),
}
PEOPLE: Final = {
    "the address, typed": asked(sec_fetch_site="none", sec_fetch_mode="navigate", user_agent=CHROME),
    "the console's own page": asked(
        "POST", origin=f"http://{HERE}", sec_fetch_site="same-origin", user_agent=CHROME
    ),
    "the same behind TLS": asked(
        "POST", host="localhost", origin="https://localhost", sec_fetch_site="same-origin"
    ),
    "a link to the metrics": asked(
        path="/_redrive/metrics", sec_fetch_site="cross-site", sec_fetch_mode="navigate", user_agent=CHROME
    ),
    "a link that confirms": asked(
        query="Action=ConfirmSubscription&TopicArn=t&Token=abc",
        sec_fetch_site="cross-site",
        sec_fetch_mode="navigate",
        user_agent=CHROME,
    ),
    "a link that unsubscribes, by a machine's name": asked(
        query="Action=Unsubscribe&SubscriptionArn=s&Token=abc", host="laptop:4566", user_agent=CHROME
    ),
    "a link that validates": asked(
        path="/eventsubscriptions/1/validate", query="id=abc", sec_fetch_site="cross-site", user_agent=CHROME
    ),
    "health, by a machine's name": asked(path="/_redrive/health", host="laptop:4566", user_agent=CHROME),
}
PAGES: Final = {
    "an image": asked(query=CREATE, sec_fetch_site="cross-site", sec_fetch_mode="no-cors", user_agent=CHROME),
    "an image, at 0.0.0.0": asked(query=CREATE, host="0.0.0.0:4566", user_agent=CHROME),
    "an image, by Docker's name": asked(query=CREATE, host="host.docker.internal:4566", user_agent=CHROME),
    "a place to go to": asked(query=CREATE, sec_fetch_site="cross-site", sec_fetch_mode="navigate"),
    "a neighbour on another port": asked(query=CREATE, sec_fetch_site="same-site", sec_fetch_mode="no-cors"),
    "a form": asked("POST", content_type=FORM, origin="https://evil.example.com", user_agent=CHROME),
    "a form of nobody": asked("POST", content_type=FORM, origin="null"),
    "a fetch that reads": asked(path="/_redrive/queues", origin="https://evil.example.com"),
    "a script that reads": asked(path="/_redrive/queues", sec_fetch_site="cross-site", sec_fetch_mode="no-cors"),
    "a reset": asked("POST", "/_redrive/reset", sec_fetch_site="cross-site", origin="https://evil.example.com"),
    "a preflight": asked("OPTIONS", origin="https://evil.example.com", access_control_request_method="POST"),
    "a neighbour's origin": asked("POST", origin="http://127.0.0.1:3000"),
    "a look-alike": asked("POST", origin=f"http://{HERE}.evil.example.com"),
    "a link that does more": asked(
        query=f"Action=ConfirmSubscription&{CREATE}", sec_fetch_site="cross-site", sec_fetch_mode="navigate"
    ),
    "a link that is signed by guess": asked(
        query="Action=Unsubscribe&SubscriptionArn=s&X-Amz-Credential=1", sec_fetch_site="cross-site"
    ),
    "a link elsewhere": asked(
        path="/000000000000/q", query="Action=Unsubscribe", sec_fetch_site="cross-site", sec_fetch_mode="navigate"
    ),
    "a link with a form": asked("POST", query="Action=ConfirmSubscription", origin="https://evil.example.com"),
    "a link of many fields": asked(query="Action=Unsubscribe" + "&a=b" * 16, sec_fetch_site="cross-site"),
    "a name of its own": asked("POST", host="evil.example.com:4566", origin="http://evil.example.com:4566"),
    "a name of its own, read": asked(host="evil.example.com:4566", path="/_redrive/queues", sec_fetch_site="same-origin"),
}  # fmt: skip


@pytest.mark.parametrize("request_", [*PROGRAMS.values(), *PEOPLE.values()], ids=[*PROGRAMS, *PEOPLE])
def test_programs_and_people_pass(request_: Request) -> None:
    assert passes(request_)


@pytest.mark.parametrize("request_", PAGES.values(), ids=PAGES)
def test_requests_caused_by_a_web_page_are_refused(request_: Request) -> None:
    assert not passes(request_)


def test_a_refusal_says_what_to_do_and_is_counted() -> None:
    refused = Refused()
    guard = BrowserGuard(KnownHosts(), refused)
    strange = guard.refusal(
        asked("POST", host="queues.corp.example:4566", x_amz_target="AmazonSQS.ListQueues")
    )
    foreign = guard.refusal(asked("POST", origin="https://<evil>.example", content_type=FORM))
    assert strange is not None
    assert foreign is not None
    assert (strange.status, foreign.status) == (403, 403)
    said = orjson.loads(strange.body)
    assert said["__type"] == "AccessDeniedException"
    assert "--allow-hosts queues.corp.example;" in said["message"] == said["error"]["message"]
    assert foreign.content_type == "text/xml"
    assert b"<Code>AccessDenied</Code>" in foreign.body
    assert b"https://&lt;evil&gt;.example" in foreign.body
    assert refused.reasons == [
        ("UnknownHost", "queues.corp.example"),
        ("CrossSiteRequest", "https://<evil>.example"),
    ]
