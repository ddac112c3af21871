import pytest

from redrive.model.http import Request
from redrive.server.landing import signpost, way_back_page

_BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "host": "localhost:4566"}


def asked(path: str, method: str = "GET", query: str = "", **headers: str) -> Request:
    return Request(method, path, query, {"host": "localhost:4566", **headers}, b"")


@pytest.mark.parametrize("accept", ["*/*", _BROWSER["accept"]])
def test_the_root_says_what_the_address_is_for(accept: str) -> None:
    page = signpost(asked("/", accept=accept))
    assert page is not None
    assert page.status == 200
    text = page.body.decode()
    assert "aws --endpoint-url http://localhost:4566 sqs list-queues" in text
    assert "http://localhost:4566/_redrive/health" in text


def test_the_root_names_all_that_is_offered() -> None:
    page = signpost(asked("/", accept="*/*"), "/_redrive/console", ["sqs", "lambda"])
    assert page is not None
    text = page.body.decode()
    assert "It offers AWS's lambda, sqs, and Azure's Event Grid." in text
    assert "http://localhost:4566/_redrive/console     the console" in text


@pytest.mark.parametrize(
    ("path", "place"), [("/health", "/_redrive/health"), ("/metrics", "/_redrive/metrics")]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_names_that_other_servers_have_lead_on(path: str, place: str, method: str) -> None:
    way = signpost(asked(path, method))
    assert way is not None
    assert (way.status, way.headers["Location"]) == (307, place)


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_queues_url_in_a_browser_says_what_it_is(name: str) -> None:
    page = signpost(Request("GET", f"/000000000000/{name}", "", _BROWSER, b""))
    assert page is not None
    assert page.body.startswith(f"This is the URL of the queue {name} of account 000000000000".encode())
    assert f"--queue-url http://localhost:4566/000000000000/{name}" in page.body.decode()


@pytest.mark.parametrize(
    "request_",
    [
        asked("/"),  # a client of a service that takes any answer: SQS's own refusal
        asked("/", "POST"),
        asked("/health", "POST"),
        asked("/", query="Action=ListQueues", accept="*/*"),
        asked("/", authorization="AWS4-HMAC-SHA256 …", accept="*/*"),
        asked("/000000000000/orders", accept="*/*"),
        Request("GET", "/000000000000/orders", "Action=ReceiveMessage", _BROWSER, b""),
        Request("GET", "/000000000000/orders/more", "", _BROWSER, b""),
        Request("GET", "/eventgrid/1/2/3/api/events", "", _BROWSER, b""),
        asked("/_redrive/health"),
    ],
    ids=lambda request: f"{request.method} {request.path}?{request.query}",
)
def test_clients_of_the_services_get_no_signpost(request_: Request) -> None:
    assert signpost(request_) is None


def test_a_visitor_who_is_lost_is_led_to_the_console() -> None:
    page = way_back_page(Request("GET", "/nonsense", "", _BROWSER, b""), "/_redrive/console/")
    assert page is not None
    assert page.status == 404
    text = page.body.decode()
    assert text.startswith("There is no page at /nonsense.\n")
    assert "http://localhost:4566/_redrive/console/     the console" in text
    assert way_back_page(asked("/nonsense", accept="*/*")) is None
    assert way_back_page(asked("/nonsense", "POST", accept="text/html")) is None
