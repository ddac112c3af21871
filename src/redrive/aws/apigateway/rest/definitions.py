"""Definitions of APIs by OpenAPI 3 and Swagger 2, with Amazon's extensions.

https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions.html
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
import yaml

from redrive.aws.apigateway.authorizers.rest import AUTHORIZERS, authorizer_of
from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.exchange import RESPONSES
from redrive.aws.apigateway.control.records import GATEWAY_RESPONSES, METHODS, Tree, new_id
from redrive.aws.apigateway.control.schemas import check_schema
from redrive.aws.apigateway.rest.defined_methods import Definition, read_method
from redrive.aws.apigateway.rest.kinds import RESOURCES
from redrive.aws.apigateway.rest.methods import with_resource
from redrive.aws.kit.json_cursor import is_nested_deeper

MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)
"""The errors of reading a definition that has, for instance, a text in the place of an object."""
INVALID: Final = "Invalid OpenAPI input."
_X: Final = "x-amazon-apigateway-"
_MODELS: Final = "https://apigateway.amazonaws.com/restapis/{}/models/"
_OWN_MODELS: Final = ("#/definitions/", "#/components/schemas/")
_DEPTH_MAX: Final = 60
_VALUES_MAX: Final = 100_000
_YAML_BYTES_MAX: Final = 512 * 1024  # 0.2 s
_YAML: Final = "tag:yaml.org,2002:"
_INTEGER_END: Final = 2**63
_INTEGER_CHARS_MAX: Final = 70  # with 64 binary digits
_METHODS: Final = {
    **{name: name.upper() for name in ("get", "put", "post", "delete", "patch", "options", "head")},
    f"{_X}any-method": "ANY",
}


@dataclass(frozen=True, slots=True)
class ApiDefinition:
    """The definition of an API."""

    settings: Mapping[str, Any]  # Its settings of the API
    document: Mapping[str, Any]  # The whole definition


def read_definition(body: bytes) -> ApiDefinition:
    """Read a definition; raises AwsError (`BadRequestException`) if the text cannot be read as a definition."""
    document = _document(body)
    info = _object(document.get("info"))
    version = document.get("openapi") or document.get("swagger")
    if not isinstance(document.get("paths"), Mapping) or not str(version or "").startswith(("2", "3")):
        raise bad_request(INVALID)
    policy = document.get(f"{_X}policy")
    settings = {
        "name": _text(info.get("title")),
        "description": _text(info.get("description")),
        "version": _text(info.get("version")),
        "binaryMediaTypes": document.get(f"{_X}binary-media-types"),
        "minimumCompressionSize": document.get(f"{_X}minimum-compression-size"),
        "apiKeySource": document.get(f"{_X}api-key-source"),
        "policy": None if policy is None else json.dumps(policy),
        "disableExecuteApiEndpoint": _object(document.get(f"{_X}endpoint-configuration")).get(
            "disableExecuteApiEndpoint"
        ),
    }
    return ApiDefinition({name: value for name, value in settings.items() if value is not None}, document)


def _document(body: bytes) -> Mapping[str, Any]:
    """The OpenAPI document in a body, JSON or YAML; raises AwsError if it is none, or nested too deeply."""
    try:
        text = body.decode()
        if text.lstrip().startswith("{"):
            document = orjson.loads(text)
        else:
            _check_yaml(text)
            document = yaml.load(text, Loader=_JSON_LOADER)  # noqa: S506 - safe, and less
    except (ValueError, OverflowError, RecursionError, yaml.YAMLError):  # a float of base 60 may be too large
        raise bad_request("Invalid OpenAPI input.") from None
    if not isinstance(document, Mapping):
        raise bad_request(INVALID)
    document = {str(name): value for name, value in document.items()}
    if is_nested_deeper(document, _DEPTH_MAX):
        raise bad_request("The API definition is nested too deeply")
    return document


def _integer(loader: Any, node: Any) -> int:
    """An integer of 64 bits; one of base 60, `1:1:1…`, takes 13 s if it is half a megabyte long.

    Raises:
        ValueError: It is longer.
    """
    value: int = loader.construct_yaml_int(node) if len(node.value) <= _INTEGER_CHARS_MAX else _INTEGER_END
    if abs(value) >= _INTEGER_END:
        raise ValueError(node.value[:_INTEGER_CHARS_MAX])
    return value


def _json_loader() -> Any:
    """PyYAML's loader of what JSON can say: dates stay texts, and there are no sets and no bytes."""
    loader: Any = type("JsonLoader", (yaml.CSafeLoader,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_YAML}timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    loader.yaml_constructors = {
        tag: construct
        for tag, construct in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_YAML) in ("null", "bool", "float", "str", "seq", "map")
    }
    loader.add_constructor(f"{_YAML}int", _integer)
    return loader


_JSON_LOADER: Final = _json_loader()


def _check_yaml(text: str) -> None:
    """Refuse YAML with aliases, which may repeat a value a million times, and YAML that is too deep or too long."""
    depth = 0
    if len(text) > _YAML_BYTES_MAX:
        raise bad_request(f"A definition in YAML has at most {_YAML_BYTES_MAX} bytes")
    for count, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > _DEPTH_MAX or count > _VALUES_MAX:
            raise bad_request("The API definition has aliases, is nested too deeply, or has too many values")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# ---- the tree --------------------------------------------------------------------------------------------------------


def import_tree(before: Tree, document: Mapping[str, Any], rng: random.Random, api_id: str) -> Tree:
    """A tree overridden by the parts of a definition; raises AwsError if one is not acceptable."""
    try:
        return _import_tree(before, document, rng, api_id)
    except MALFORMED:
        raise bad_request(INVALID) from None


def _import_tree(before: Tree, document: Mapping[str, Any], rng: random.Random, api_id: str) -> Tree:
    """A tree with what a definition describes; its paths come last, since they refer to the rest."""
    schemas = _object(document.get("definitions") or _object(document.get("components")).get("schemas"))
    validators: dict[str, dict[str, Any]] = {}
    for name, value in _object(document.get(f"{_X}request-validators")).items():
        checks = ("validateRequestBody", "validateRequestParameters")
        validator_id = new_id(rng)
        validators[validator_id] = {
            "id": validator_id,
            "name": str(name),
            **{check: bool(_object(value).get(check)) for check in checks},
        }
    schemes = _object(
        document.get("securityDefinitions") or _object(document.get("components")).get("securitySchemes")
    )
    tree: Tree = {
        **before,
        "models": {**(before.get("models") or {}), **_models(schemas, rng, api_id)},
        "validators": {**(before.get("validators") or {}), **validators},
        GATEWAY_RESPONSES: {**(before.get(GATEWAY_RESPONSES) or {}), **dict(_gateway_responses(document))},
    }
    for name, scheme in schemes.items():
        if f"{_X}authorizer" in _object(scheme):
            tree = _with_authorizer(tree, str(name), _object(scheme), rng)
    validator_ids = {value["name"]: key for key, value in validators.items()}
    authorizer_ids = {value["name"]: key for key, value in (tree.get(AUTHORIZERS) or {}).items()}
    definition = Definition(document, validator_ids, schemes, authorizer_ids)
    for path, item in document["paths"].items():
        tree = _with_path(tree, str(path), _object(item), definition, rng)
    return tree


def _with_authorizer(tree: Tree, name: str, scheme: Mapping[str, Any], rng: random.Random) -> Tree:
    """The tree with the authorizer of a security scheme, in place of one of its name."""
    authorizers: Mapping[str, Any] = tree.get(AUTHORIZERS) or {}
    existing_id = next((key for key, value in authorizers.items() if value["name"] == name), None)
    members = _object(scheme[f"{_X}authorizer"])
    kind, ttl = str(members.get("type", "")).upper(), members.get("authorizerResultTtlInSeconds")
    source = {"identitySource": f"method.request.header.{scheme.get('name')}"} if kind == "TOKEN" else {}
    params = {
        **source,
        **members,
        "name": name,
        "type": kind,
        "authorizerResultTtlInSeconds": None if ttl is None else int(ttl),
    }
    authorizer_id = existing_id or new_id(rng)
    return {**tree, AUTHORIZERS: {**authorizers, authorizer_id: authorizer_of(params, authorizer_id, tree)}}


def _models(schemas: Mapping[str, Any], rng: random.Random, api_id: str) -> dict[str, Any]:
    """The models that schemas become; references between them become references by the URLs of the models."""
    urls = {str(name): f"{_MODELS.format(api_id)}{name}" for name in schemas}
    texts = {
        str(name): json.dumps(_with_model_urls(schema, urls), default=str) for name, schema in schemas.items()
    }
    for text in texts.values():
        check_schema(text)
    return {
        name: {"id": new_id(rng), "name": name, "schema": text, "contentType": "application/json"}
        for name, text in texts.items()
    }


def _with_model_urls(schema: Any, urls: Mapping[str, str]) -> Any:
    """A schema whose references to other models of the definition are URLs, as in the models of an API (recorded)."""
    if isinstance(schema, list):
        return [_with_model_urls(each, urls) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    members = {name: _with_model_urls(value, urls) for name, value in schema.items()}
    reference = members.get("$ref")
    if isinstance(reference, str) and reference.startswith(_OWN_MODELS):
        members["$ref"] = urls.get(reference.rpartition("/")[2], reference)
    return members


def _gateway_responses(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, definition in _object(document.get(f"{_X}gateway-responses")).items():
        if kind not in RESPONSES:
            raise bad_request(f"Invalid response type specified: {kind}")
        value = _object(definition)
        response = {
            name: value[name] for name in ("responseParameters", "responseTemplates") if name in value
        }
        if value.get("statusCode"):
            response["statusCode"] = str(value["statusCode"])
        yield kind, response


def _with_path(
    tree: Tree, path: str, item: Mapping[str, Any], definition: Definition, rng: random.Random
) -> Tree:
    """The tree with the resources that a path leads through, and the methods of its item at the last one."""
    by_path = {resource["path"]: key for key, resource in tree[RESOURCES].items()}
    resource_id, full_path = by_path["/"], ""
    for part in path.strip("/").split("/"):
        if not part:
            continue
        full_path = f"{full_path}/{part}"
        if full_path not in by_path:
            by_path[full_path] = new_id(rng)
            tree = with_resource(tree, by_path[full_path], resource_id, part)
        resource_id = by_path[full_path]
    methods = {
        _METHODS[name]: read_method(tree, _METHODS[name], resource_id, item, _object(operation), definition)
        for name, operation in item.items()
        if name in _METHODS
    }
    if not methods:
        return tree
    resource = tree[RESOURCES][resource_id]
    new_resource = {**resource, METHODS: {**(resource.get(METHODS) or {}), **methods}}
    return {**tree, RESOURCES: {**tree[RESOURCES], resource_id: new_resource}}
