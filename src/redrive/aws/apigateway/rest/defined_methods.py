"""Methods of definitions: what a path's operation of OpenAPI says of a method, and what is behind it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.records import Tree
from redrive.aws.apigateway.rest.kinds import INTEGRATION, METHOD, RESOURCES
from redrive.aws.apigateway.rest.methods import integration_of, integration_response_of, method_of
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.json.values import reader

_X: Final = "x-amazon-apigateway-"
_JSON: Final = "application/json"
_PLACES: Final = {"header": "header", "query": "querystring", "path": "path"}
_VARIABLES: Final = re.compile(r"\{([^{}+]+)\+?\}")
_KINDS: Final = frozenset({"AWS", "AWS_PROXY", "HTTP", "HTTP_PROXY", "MOCK"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition, as far as all its methods need it."""

    document: Mapping[str, Any]  # The whole
    validators: Mapping[str, str]  # The ids of request validators, by name
    schemes: Mapping[str, Any]  # Security schemes that a method's `security` can refer to
    authorizers: Mapping[str, str]  # The ids of those of them that are authorizers, by name

    def resolved(self, value: Any) -> Mapping[str, Any]:
        """A parameter, or the one that it refers to."""
        target = value
        if isinstance(value, Mapping) and isinstance(value.get("$ref"), str):
            target = self.document
            for step in value["$ref"].removeprefix("#/").split("/"):
                target = target.get(step) if isinstance(target, Mapping) else None
        return target if isinstance(target, Mapping) else {}


def defined_method(
    tree: Tree,
    name: str,
    resource_id: str,
    item: Mapping[str, Any],
    operation: Mapping[str, Any],
    definition: Definition,
) -> dict[str, Any]:
    """A method, `GET` … `ANY`, as an operation of a path's item defines it.

    Raises:
        AwsError: `BadRequestException`: a part of it is not acceptable.
    """
    listed = [*_listed(item.get("parameters")), *_listed(operation.get("parameters"))]
    parameters = [definition.resolved(each) for each in listed]
    params = {
        "httpMethod": name,
        "operationName": operation.get("operationId"),
        "requestParameters": _request_parameters(parameters, tree[RESOURCES][resource_id]["path"]) or None,
        "requestModels": dict(_request_models(parameters, operation, definition)) or None,
        "requestValidatorId": _validator(operation, definition),
        **_authorization(operation, definition),
    }
    method_tree = method_of(tree, params)
    responses = {
        str(status): _method_response(str(status), definition.resolved(response))
        for status, response in (operation.get("responses") or {}).items()
        if str(status).isdecimal()
    }
    if responses:
        method_tree["methodResponses"] = responses
    integration = operation.get(f"{_X}integration")
    if isinstance(integration, Mapping):
        method_tree[INTEGRATION] = _integration(integration, resource_id)
    return _typed(method_tree)


def _typed(method: dict[str, Any]) -> dict[str, Any]:
    """A method whose values have the published model's types: templates and mappings count on texts."""
    try:
        typed: dict[str, Any] = reader(METHOD.shape)(method)
    except AwsError as mismatch:
        raise ValueError(str(mismatch)) from None
    return typed


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _request_parameters(parameters: list[Mapping[str, Any]], path: str) -> dict[str, bool]:
    """The parameters of a method; it has those of its path whether its definition says so or not (recorded)."""
    declared = {
        f"method.request.{_PLACES[each['in']]}.{each['name']}": bool(each.get("required"))
        for each in parameters
        if each.get("in") in _PLACES and each.get("name")
    }
    names = {name.rpartition(".")[2] for name in declared}
    of_path = [name for name in _VARIABLES.findall(path) if name not in names]
    return {**declared, **{f"method.request.path.{name}": True for name in of_path}}


def _request_models(
    parameters: list[Mapping[str, Any]], operation: Mapping[str, Any], definition: Definition
) -> Iterator[tuple[str, str]]:
    consumed = operation.get("consumes") or definition.document.get("consumes") or [_JSON]
    for each in parameters:
        model = _model(each.get("schema")) if each.get("in") == "body" else ""
        if model:
            yield from ((str(kind), model) for kind in _listed(consumed))
    body = definition.resolved(operation.get("requestBody"))
    for kind, content in (body.get("content") or {}).items():
        model = _model(definition.resolved(content).get("schema"))
        if model:
            yield str(kind), model


def _model(schema: Any) -> str:
    """The name of the model that a schema refers to; empty: it is not a reference."""
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    return str(reference).rpartition("/")[2] if reference else ""


def _validator(operation: Mapping[str, Any], definition: Definition) -> str | None:
    name = operation.get(f"{_X}request-validator", definition.document.get(f"{_X}request-validator"))
    if name is None:
        return None
    validator = definition.validators.get(str(name))
    if validator is None:
        raise bad_request(f"Invalid Request Validator specified: {name}")
    return validator


def _authorization(operation: Mapping[str, Any], definition: Definition) -> dict[str, Any]:
    settings: dict[str, Any] = {"authorizationType": "NONE"}
    if isinstance(operation.get(f"{_X}auth"), Mapping):
        settings["authorizationType"] = str(operation[f"{_X}auth"].get("type", "NONE")).upper()
    for requirement in _listed(operation.get("security", definition.document.get("security"))):
        for name in requirement if isinstance(requirement, Mapping) else ():
            scheme = definition.resolved(definition.schemes.get(name))
            if name in definition.authorizers:
                settings |= {"authorizationType": "CUSTOM", "authorizerId": definition.authorizers[name]}
            elif scheme.get(f"{_X}authtype") == "awsSigv4":
                settings["authorizationType"] = "AWS_IAM"
            elif scheme.get("type") == "apiKey" and str(scheme.get("name", "")).lower() == "x-api-key":
                settings["apiKeyRequired"] = True
    return settings


def _method_response(status: str, response: Mapping[str, Any]) -> dict[str, Any]:
    method_response: dict[str, Any] = {"statusCode": status}
    contents = response.get("content") or {}
    models = {kind: _model(content.get("schema")) for kind, content in contents.items()}
    if model := _model(response.get("schema")):
        models[_JSON] = model
    if response_models := {kind: model for kind, model in models.items() if model}:
        method_response["responseModels"] = response_models
    if isinstance(response.get("headers"), Mapping):
        method_response["responseParameters"] = {
            f"method.response.header.{name}": False for name in response["headers"]
        }
    return method_response


def _integration(definition: Mapping[str, Any], resource_id: str) -> dict[str, Any]:
    kind = str(definition.get("type", "")).upper()
    if kind not in _KINDS:
        raise bad_request(f"Invalid integration type specified: {definition.get('type')}")
    timeout = definition.get("timeoutInMillis")
    params = {
        **{key: definition.get(key) for key in ("uri", "credentials", "connectionId", "cacheNamespace")},
        **{
            key: definition.get(key)
            for key in ("requestParameters", "requestTemplates", "cacheKeyParameters")
        },
        **{
            key: str(definition[key]).upper()
            for key in ("passthroughBehavior", "contentHandling", "connectionType")
            if definition.get(key)
        },
        "type": kind,
        "integrationHttpMethod": None if kind == "MOCK" else definition.get("httpMethod"),
        "timeoutInMillis": None if timeout is None else int(timeout),
    }
    integration_tree = integration_of(params, resource_id)
    responses: dict[str, Any] = {}
    for pattern, response in (definition.get("responses") or {}).items():
        status = str(response.get("statusCode", "200"))
        selection = {} if str(pattern) == "default" else {"selectionPattern": str(pattern)}
        response_key = status if status not in responses else f"{status} {pattern}"
        responses[response_key] = integration_response_of({**response, **selection, "statusCode": status})
    return {**integration_tree, "integrationResponses": responses} if responses else integration_tree
