"""Methods of definitions: reads a method and its integration from an operation of OpenAPI."""

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
    """A definition, for the reading of its methods."""

    document: Mapping[str, Any]  # The whole definition
    validators: Mapping[str, str]  # The ids of request validators, by name
    schemes: Mapping[str, Any]  # Security schemes that a method's `security` can refer to
    authorizers: Mapping[str, str]  # The ids of authorizers, by the names of their schemes

    def resolve(self, value: Any) -> Mapping[str, Any]:
        """An object, or the one that it refers to by `$ref`; empty if it is neither."""
        target = value
        if isinstance(value, Mapping) and isinstance(value.get("$ref"), str):
            target = self.document
            for step in value["$ref"].removeprefix("#/").split("/"):
                target = target.get(step) if isinstance(target, Mapping) else None
        return target if isinstance(target, Mapping) else {}


def read_method(
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
    listed = (*_list_or_empty(item.get("parameters")), *_list_or_empty(operation.get("parameters")))
    parameters = [definition.resolve(each) for each in listed]
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
        str(status): _method_response(str(status), definition.resolve(response))
        for status, response in (operation.get("responses") or {}).items()
        if str(status).isdecimal()
    }
    if responses:
        method_tree["methodResponses"] = responses
    integration = operation.get(f"{_X}integration")
    if isinstance(integration, Mapping):
        method_tree[INTEGRATION] = _integration(integration, resource_id)
    return _with_model_types(method_tree)


def _with_model_types(method: dict[str, Any]) -> dict[str, Any]:
    """A method, checked to have values of the published model's types; raises ValueError if it has others."""
    try:
        typed_method: dict[str, Any] = reader(METHOD.shape)(method)
    except AwsError as mismatch:
        raise ValueError(str(mismatch)) from None
    return typed_method


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _request_parameters(parameters: list[Mapping[str, Any]], path: str) -> dict[str, bool]:
    """The parameters of a method, with those of its path even if the definition omits them (recorded)."""
    declared = {
        f"method.request.{_PLACES[each['in']]}.{each['name']}": bool(each.get("required"))
        for each in parameters
        if each.get("in") in _PLACES and each.get("name")
    }
    names = {name.rpartition(".")[2] for name in declared}
    undeclared_names = [name for name in _VARIABLES.findall(path) if name not in names]
    return {**declared, **{f"method.request.path.{name}": True for name in undeclared_names}}


def _request_models(
    parameters: list[Mapping[str, Any]], operation: Mapping[str, Any], definition: Definition
) -> Iterator[tuple[str, str]]:
    """The media types of an operation's body, each with the name of its model: of OpenAPI 2, then of OpenAPI 3."""
    media_types = operation.get("consumes") or definition.document.get("consumes") or [_JSON]
    for each in parameters:
        model = _model(each.get("schema")) if each.get("in") == "body" else ""
        if model:
            yield from ((str(kind), model) for kind in _list_or_empty(media_types))
    body = definition.resolve(operation.get("requestBody"))
    for kind, content in (body.get("content") or {}).items():
        model = _model(definition.resolve(content).get("schema"))
        if model:
            yield str(kind), model


def _model(schema: Any) -> str:
    """The name of the model that a schema refers to; empty: it is not a reference."""
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    return str(reference).rpartition("/")[2] if reference else ""


def _validator(operation: Mapping[str, Any], definition: Definition) -> str | None:
    """The id of the validator that an operation, or else the definition, names; None: neither does."""
    name = operation.get(f"{_X}request-validator", definition.document.get(f"{_X}request-validator"))
    if name is None:
        return None
    validator = definition.validators.get(str(name))
    if validator is None:
        raise bad_request(f"Invalid Request Validator specified: {name}")
    return validator


def _authorization(operation: Mapping[str, Any], definition: Definition) -> dict[str, Any]:
    """The settings for a method's callers, by its `x-amazon-apigateway-auth` and its security schemes."""
    settings: dict[str, Any] = {"authorizationType": "NONE"}
    if isinstance(operation.get(f"{_X}auth"), Mapping):
        settings["authorizationType"] = str(operation[f"{_X}auth"].get("type", "NONE")).upper()
    for requirement in _list_or_empty(operation.get("security", definition.document.get("security"))):
        names = requirement if isinstance(requirement, Mapping) else ()
        for name in names:
            scheme = definition.resolve(definition.schemes.get(name))
            if name in definition.authorizers:
                settings |= {"authorizationType": "CUSTOM", "authorizerId": definition.authorizers[name]}
            elif scheme.get(f"{_X}authtype") == "awsSigv4":
                settings["authorizationType"] = "AWS_IAM"
            elif scheme.get("type") == "apiKey" and str(scheme.get("name", "")).lower() == "x-api-key":
                settings["apiKeyRequired"] = True
    return settings


def _method_response(status: str, response: Mapping[str, Any]) -> dict[str, Any]:
    """A response of a method, with its models by media type; Swagger 2 has one schema, for JSON."""
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
    """The integration that a definition describes, with its responses; raises AwsError."""
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
        # By status; a second response of a status has its pattern in the key.
        response_key = status if status not in responses else f"{status} {pattern}"
        responses[response_key] = integration_response_of({**response, **selection, "statusCode": status})
    return {**integration_tree, "integrationResponses": responses} if responses else integration_tree
