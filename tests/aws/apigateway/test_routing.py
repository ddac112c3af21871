"""Routing: a text before a variable, a variable before the greedy one, and each resource with names of its own."""

import pytest

from redrive.aws.apigateway.requests.routing import DEFAULT, Routes

#: By path: the methods of the resource; paths of one shape are possible in HTTP APIs.
RESOURCES = {
    "/": "GET",
    "/users/me": "GET",
    "/users/{id}": "GET",
    "/users/{userId}": "DELETE",
    "/users/{owner}": "ANY",
    "/users/{userId}/posts/{postId}": "GET",
    "/files/{path+}": "GET",
    "/files/{target+}": "PUT",
    DEFAULT: "ANY",
}
ROUTES = Routes(
    [{"path": path, "resourceMethods": {verb: {"verb": verb}}} for path, verb in RESOURCES.items()]
)


@pytest.mark.parametrize(
    ("method", "path", "resource", "parameters"),
    [
        ("GET", "/", "/", {}),
        ("GET", "/users/me", "/users/me", {}),
        ("GET", "/users/7", "/users/{id}", {"id": "7"}),
        ("DELETE", "/users/7", "/users/{userId}", {"userId": "7"}),
        ("PUT", "/users/me", "/users/{owner}", {"owner": "me"}),
        ("GET", "/users/7/posts/a%20b", "/users/{userId}/posts/{postId}", {"userId": "7", "postId": "a b"}),
        ("GET", "/files/a/b", "/files/{path+}", {"path": "a/b"}),
        ("PUT", "/files/a/b", "/files/{target+}", {"target": "a/b"}),
        ("PUT", "/files", DEFAULT, {}),
    ],
)
def test_the_closest_resource_answers(
    method: str, path: str, resource: str, parameters: dict[str, str]
) -> None:
    match = ROUTES.find(path, method)
    assert match is not None
    assert (match[0]["path"], match[1]["verb"], match[2]) == (resource, RESOURCES[resource], parameters)


def test_nothing_counts_behind_a_greedy_variable() -> None:
    match = Routes([{"path": "/{all+}/{id}", "resourceMethods": {"GET": "GET"}}]).find("/a/b", "GET")
    assert match is not None
    assert match[2] == {"all": "a/b"}


def test_a_path_without_a_resource_leads_nowhere() -> None:
    assert Routes([{"path": "/a", "resourceMethods": {"GET": "GET"}}]).find("/a", "PUT") is None
