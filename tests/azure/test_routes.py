import pytest

from redrive.azure.wire.routes import RouteTable

TABLE = RouteTable(
    {
        "GET /subscriptions/{subscription}/resourceGroups/{group}": "group",
        "PUT /subscriptions/{subscription}/resourceGroups/{group}": "make",
        "GET /{scope...}/providers/Grid/events": "extension",
        "GET /{parent...}/events": "nested",
        "POST /topics/{topic}:publish": "publish",
        "GET /a.b": "dot",
    }
)


@pytest.mark.parametrize(
    ("method", "path", "verb", "params"),
    [
        ("GET", "/subscriptions/1/resourceGroups/RG", "group", {"subscription": "1", "group": "RG"}),
        ("PUT", "/SUBSCRIPTIONS/1/resourcegroups/RG/", "make", {"subscription": "1", "group": "RG"}),
        ("GET", "//subscriptions//1/resourceGroups/a%20b", "group", {"subscription": "1", "group": "a b"}),
        ("GET", "/s/1/t/2/providers/grid/events", "extension", {"scope": "s/1/t/2"}),
        ("GET", "/%2Fs%2f1/t/2/providers/grid/events", "extension", {"scope": "s/1/t/2"}),
        ("GET", "/s/1/t/2/events", "nested", {"parent": "s/1/t/2"}),
        ("POST", "/topics/orders:publish", "publish", {"topic": "orders"}),
        ("GET", "/a.b", "dot", {}),
    ],
)
def test_a_route_is_found(method: str, path: str, verb: str, params: dict[str, str]) -> None:
    found = TABLE.find(method, path)
    assert found is not None
    assert (found.verb, found.params) == (verb, params)


def test_a_path_that_knows_other_methods() -> None:
    found = TABLE.find("DELETE", "/subscriptions/1/resourceGroups/rg")
    assert found is not None
    assert (found.verb, found.methods) == (None, ("GET", "PUT"))


@pytest.mark.parametrize("path", ["/", "/subscriptions/1", "/topics/a:b:publish", "/aXb", "/events"])
def test_an_unknown_path_has_no_route(path: str) -> None:
    assert TABLE.find("GET", path) is None


def test_a_path_too_long_for_any_resource_has_no_route() -> None:
    assert TABLE.find("GET", "/" + "s/1" * 1000 + "/events") is not None
    assert TABLE.find("GET", "/" + "s/1" * 1400 + "/events") is None


def test_the_first_pattern_that_takes_a_path_has_it() -> None:
    table = RouteTable({"GET /{name}": "any"})
    table.add_all({"GET /one": "one"})
    found = table.find("GET", "/one")
    assert found is not None
    assert found.verb == "any"
    assert table.names == ["GET /{name}", "GET /one"]
