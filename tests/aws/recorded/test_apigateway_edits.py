"""API Gateway's recorded answers to those who edit APIs: what is changed, and how it is refused."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
import pytest

from tests.aws.recorded.test_apigateway import played
from tests.aws.stage import ACCOUNT, Stage, on_stage

_METHOD: Final = {"httpMethod": "GET"}
_MUST_BE_REPLACED: Final = "Invalid patch operation specified. Must be one of: [replace]"
_SIZE: Final = "Invalid minimum compression size, must be between 0 and 10485760"
_NO_PARAMETER: Final = "Invalid parameter name specified"
_LOG_PATH: Final = (
    "Invalid accessLogSettings path. Must be one of : [/accessLogSettings/destinationArn,"
    " /accessLogSettings/format]"
)
_LONELY_SETTING: Final = (
    "Cannot remove method setting accessLogSettings/randomValue because"
    " there is no method setting for this method "
)
Patch = tuple[str, str | None, str | None]
_REFUSED: Final[Sequence[tuple[str, Sequence[Patch], str]]] = [
    (
        "UpdateRestApi",
        [("wrong", "/name", "x"), ("odd", "/name", "x")],
        (
            "2 validation errors detected: Value 'wrong' at 'updateRestApiInput.patchOperations.1.member.op' failed to"
            " satisfy constraint: Member must satisfy enum value set: [add, remove, move, test, replace, copy]; Value"
            " 'odd' at 'updateRestApiInput.patchOperations.2.member.op' failed to satisfy constraint: Member must"
            " satisfy enum value set: [add, remove, move, test, replace, copy]"
        ),
    ),
    ("UpdateRestApi", [("add", "/minimumCompressionSize", "1")], _MUST_BE_REPLACED),
    ("UpdateRestApi", [("replace", "/minimumCompressionSize", "much")], _SIZE),
    ("UpdateRestApi", [("replace", "/minimumCompressionSize", "10485761")], _SIZE),
    ("UpdateRestApi", [("add", "/binaryMediaTypes", "a/b")], "Invalid patch path /binaryMediaTypes"),
    ("UpdateRestApi", [("replace", None, "x")], "Invalid patch path null"),
    (
        "UpdateRestApi",
        [("replace", "/endpointConfiguration/ipAddressType", "ipv6")],
        "ipAddressType must be either ipv4 or dualstack.",
    ),
    (
        "UpdateRestApi",
        [("replace", "/endpointConfiguration/types/EDGE", "WRONG")],
        "Invalid EndpointTypes specified. Valid options are REGIONAL,EDGE,PRIVATE",
    ),
    ("UpdateMethod", [("replace", "/httpMethod", "PUT")], "Invalid patch path /httpMethod"),
    ("UpdateMethod", [("add", "/authorizationType", "NONE")], _MUST_BE_REPLACED),
    ("UpdateMethod", [("remove", "/requestValidatorId", None)], _MUST_BE_REPLACED),
    (
        "UpdateMethod",
        [("replace", "/requestValidatorId", "absent")],
        "Invalid Request Validator identifier specified",
    ),
    (
        "UpdateMethodResponse",
        [("remove", "/responseParameters/method.response.header.x", None)],
        _NO_PARAMETER,
    ),
    (
        "UpdateMethodResponse",
        [("remove", "/responseModels/a~1b", None)],
        "Content-Type specified was not found",
    ),
    ("UpdateGatewayResponse", [("add", "/statusCode", "400")], "Invalid patch path /statusCode"),
    (
        "UpdateGatewayResponse",
        [("copy", "/responseTemplates/a~1b", None)],
        "Invalid patch operation specified. Must be 'add'|'remove'|'replace'",
    ),
    (
        "UpdateGatewayResponse",
        [("add", "/responseTemplates/a~1b", None)],
        "Invalid null or empty value in responseTemplates",
    ),
    (
        "UpdateGatewayResponse",
        [("add", "/responseParameters/gatewayresponse.header.x", None)],
        "Invalid null or empty value in responseParameters",
    ),
    (
        "UpdateGatewayResponse",
        [("replace", "/responseParameters/gatewayresponse.header.x", "'y'")],
        _NO_PARAMETER,
    ),
    (
        "UpdateModel",
        [("replace", "/schema", "{}")],
        "Model schema must have at least 1 property or array items defined",
    ),
    (
        "UpdateModel",
        [("replace", "/name", "x")],
        "Invalid patch path  '/name' specified for op 'replace'. Must be one of: [/description, /schema]",
    ),
    ("UpdateRequestValidator", [("replace", "/name", "")], "Request Validator name cannot be blank"),
    (
        "UpdateRequestValidator",
        [("replace", "/id", "")],
        (
            "Invalid patch path  '/id' specified for op 'replace'. Must be one of: [/name, /validateRequestParameters,"
            " /validateRequestBody]"
        ),
    ),
    (
        "UpdateApiKey",
        [("replace", "/value", "x")],
        (
            "Invalid patch path  '/value' specified for op 'replace'. Must be one of: [/description, /enabled, /name,"
            " /customerId]"
        ),
    ),
    (
        "UpdateApiKey",
        [("add", "/enabled", "true")],
        "Invalid patch path  '/enabled' specified for op 'add'. Please choose supported operations",
    ),
    ("UpdateApiKey", [("replace", "/description", "d" * 125_001)], "Invalid API Key description specified."),
    ("UpdateStage", [("replace", "/accessLogSettings/other", "x")], _LOG_PATH),
    ("UpdateStage", [("remove", "/accessLogSettings/randomValue", None)], _LONELY_SETTING),
    ("UpdateStage", [("replace", "/accessLogSettings/format", "")], "Access Log value must not be empty"),
    ("UpdateUsagePlan", [("remove", "/apiStages", "one")], "Invalid API Stage specified"),
    (
        "UpdateUsagePlan",
        [("remove", "/apiStages", "a:b")],
        "Invalid API Stage {api: a, stage: b} specified for usageplan PLAN",
    ),
]


def operations_of(patches: Sequence[Patch]) -> list[dict[str, str]]:
    """Patch operations; what is None is not said."""
    return [
        {name: value for name, value in zip(("op", "path", "value"), patch, strict=True) if value is not None}
        for patch in patches
    ]


async def everything(stage: Stage, api: str, resource: str) -> Mapping[str, Mapping[str, str]]:
    """The places of all updates, in an API that has one of each kind."""
    named = {"restApiId": api, "resourceId": resource, **_METHOD}
    response = {**named, "statusCode": "200"}
    integration = {"type": "MOCK", "requestTemplates": {"application/json": "{}"}}
    await stage.call(stage.root, "apigateway", "PutMethod", **named, authorizationType="NONE")
    await stage.call(stage.root, "apigateway", "PutMethodResponse", **response)
    await stage.call(stage.root, "apigateway", "PutIntegration", **named, **integration)
    await stage.call(stage.root, "apigateway", "CreateDeployment", restApiId=api, stageName="test")
    validator = await stage.call(
        stage.root, "apigateway", "CreateRequestValidator", restApiId=api, name="v", validateRequestBody=True
    )
    key = await stage.call(stage.root, "apigateway", "CreateApiKey", name="k")
    plan = await stage.call(stage.root, "apigateway", "CreateUsagePlan", name="p")
    return {
        "UpdateRestApi": {"restApiId": api},
        "UpdateMethod": named,
        "UpdateMethodResponse": response,
        "UpdateGatewayResponse": {"restApiId": api, "responseType": "THROTTLED"},
        "UpdateModel": {"restApiId": api, "modelName": "Empty"},
        "UpdateRequestValidator": {"restApiId": api, "requestValidatorId": validator["id"]},
        "UpdateApiKey": {"apiKey": key["id"]},
        "UpdateStage": {"restApiId": api, "stageName": "test"},
        "UpdateUsagePlan": {"usagePlanId": plan["id"]},
    }


def test_changes_that_a_kind_does_not_take_are_refused_in_its_words() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        places = await everything(stage, api, resource)
        for operation, patches, text in _REFUSED:
            params = {**places[operation], "patchOperations": operations_of(patches)}
            refusal = await stage.refusal(stage.root, "apigateway", operation, **params)
            plan = places["UpdateUsagePlan"]["usagePlanId"]
            assert refusal.partition(": ")[2] == text.replace("PLAN", plan), (operation, patches)

    played(play)


def test_changes_have_the_recorded_effects() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        places = await everything(stage, api, resource)

        async def changed(operation: str, *patches: Patch) -> Any:
            params = {**places[operation], "patchOperations": operations_of(patches)}
            return await stage.call(stage.root, "apigateway", operation, **params)

        # The type is the path's end, whatever the value; a replacement comes last.
        shown = await changed("UpdateRestApi", ("add", "/binaryMediaTypes/-", "image/png"))
        assert shown["binaryMediaTypes"] == ["-"]
        add = ("add", "/binaryMediaTypes/image~1png", None)
        shown = await changed("UpdateRestApi", add, ("replace", "/binaryMediaTypes/-", "image/gif"))
        assert shown["binaryMediaTypes"] == ["image/png", "image/gif"]
        shown = await changed("UpdateRestApi", ("replace", "/minimumCompressionSize", "10"))
        assert shown["minimumCompressionSize"] == 10
        shown = await changed("UpdateRestApi", ("replace", "/minimumCompressionSize", None))
        assert "minimumCompressionSize" not in shown
        shown = await changed("UpdateRestApi", ("replace", "/endpointConfiguration/types/EDGE", "REGIONAL"))
        assert shown["endpointConfiguration"]["types"] == ["REGIONAL"]
        shown = await changed("UpdateRequestValidator", ("replace", "/validateRequestBody", None))
        assert shown["validateRequestBody"] is False
        header = "/responseParameters/method.response.header.x"
        shown = await changed("UpdateMethodResponse", ("add", header, "true"))
        assert shown["responseParameters"] == {"method.response.header.x": True}
        assert "responseParameters" not in await changed("UpdateMethodResponse", ("remove", header, None))

    played(play)


def test_answers_of_a_class_are_those_of_all_its_kinds() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        assert resource
        own = {
            "statusCode": "418",
            "responseParameters": {"gatewayresponse.header.x": "'y'"},
            "responseTemplates": {"text/plain": "no"},
        }
        params = {"restApiId": api, "responseType": "DEFAULT_4XX", **own}
        await stage.call(stage.root, "apigateway", "PutGatewayResponse", **params)
        listed = await stage.call(stage.root, "apigateway", "GetGatewayResponses", restApiId=api)
        by_type = {item["responseType"]: item for item in listed["items"]}
        derived = {name: by_type["THROTTLED"][name] for name in own}
        assert (derived, by_type["THROTTLED"]["defaultResponse"]) == (own, True)
        assert by_type["INTEGRATION_TIMEOUT"]["statusCode"] == "504"

    played(play)


def test_a_model_that_a_request_needs_stays() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        assert resource
        root = (await stage.call(stage.root, "apigateway", "GetRestApi", restApiId=api))["rootResourceId"]
        for resource_id in (resource, root):
            named = {"restApiId": api, "resourceId": resource_id, "httpMethod": "ANY"}
            models = {"requestModels": {"application/json": "Empty"}, "authorizationType": "NONE"}
            await stage.call(stage.root, "apigateway", "PutMethod", **named, **models)
            refusal = await stage.refusal(
                stage.root, "apigateway", "DeleteModel", restApiId=api, modelName="Empty"
            )
            path = "//ANY" if resource_id == root else "/cars/ANY"
            text = f"Cannot delete model 'Empty', is referenced in method request: {path}"
            assert refusal == f"ConflictException: {text}"
            await stage.call(stage.root, "apigateway", "DeleteMethod", **named)

    played(play)


_NO_AUTHORIZER: Final = (
    "Invalid authorizer ID specified. Setting the authorization type to CUSTOM or COGNITO_USER_POOLS requires a"
    " valid authorizer."
)
_NO_STAGE: Final = (
    "Non null and non empty stageName must be provided for canary deployment. Provided value is null"
)
_NO_SUCH_STAGE: Final = "Stage non-existing must already be created before making a canary release deployment"
_CANARY: Final = {"canarySettings": {"percentTraffic": 1.0}}
_NOT_OFFERED: Final = "Invalid deployment content specified."
_BAD_STATUS_TYPE: Final = "class com.amazon.coral.value.json.numbers.TruncatingBigNumber"


def test_requests_that_lack_something_are_refused_in_the_recorded_words() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        places = await everything(stage, api, resource)
        named, of_api = places["UpdateMethod"], {"restApiId": api}
        table: Sequence[tuple[str, Mapping[str, Any], str]] = [
            (
                "PutMethod",
                {**named, "httpMethod": "PUT", "authorizationType": "CUSTOM"},
                f"BadRequestException: {_NO_AUTHORIZER}",
            ),
            (
                "CreateAuthorizer",
                {"restApiId": "absent", "name": "a", "type": "TOKEN"},
                (
                    "ConflictException: Unable to complete operation due to concurrent modification. Please try again"
                    " later."
                ),
            ),
            (
                "GetAuthorizers",
                {"restApiId": "absent"},
                f"NotFoundException: Invalid API identifier specified {ACCOUNT}:absent",
            ),
            ("CreateDeployment", {**of_api, **_CANARY}, f"BadRequestException: {_NOT_OFFERED}{_NO_STAGE}"),
            (
                "CreateDeployment",
                {**of_api, **_CANARY, "stageName": "non-existing"},
                f"BadRequestException: {_NOT_OFFERED}{_NO_SUCH_STAGE}",
            ),
            (
                "PutIntegrationResponse",
                {**named, "statusCode": "200", "responseTemplates": {"123": ""}},
                "BadRequestException: Validation Result: warnings : [], errors : [Invalid content type specified: 123]",
            ),
            (
                "PutIntegration",
                {**named, "type": "MOCK", "requestParameters": {"integration.request.header.x": True}},
                "SerializationException: class java.lang.Boolean can not be converted to an String",
            ),
            (
                "PutMethod",
                {**named, "authorizationType": 7},
                f"SerializationException: {_BAD_STATUS_TYPE} can not be converted to an String",
            ),
            (
                "CreateApiKey",
                {"name": "n" * 1025},
                "BadRequestException: Invalid API Key name, can be at most 1024 characters.",
            ),
            (
                "UpdateResource",
                {
                    **of_api,
                    "resourceId": "ROOT",
                    "patchOperations": operations_of([("replace", "/pathPart", "x")]),
                },
                "BadRequestException: Root resource cannot update its pathPart.",
            ),
        ]
        root = (await stage.call(stage.root, "apigateway", "GetRestApi", **of_api))["rootResourceId"]
        for operation, params, text in table:
            known = {**params, "resourceId": root} if params.get("resourceId") == "ROOT" else params
            assert await stage.refusal(stage.root, "apigateway", operation, **known) == text, operation

    played(play)


def test_some_lists_are_empty_where_others_refuse() -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "apigateway", "CreateApiKey", name="k")
        assert (await stage.call(stage.root, "apigateway", "GetApiKeys", limit=-1))["items"] == []
        answer = await stage.call(stage.root, "apigateway", "GetUsagePlanKeys", usagePlanId="absent")
        assert answer["items"] == []

    on_stage(play, auth="off")


def test_a_plan_goes_when_the_api_of_its_stages_has_gone() -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        await everything(stage, api, resource)
        stages = [{"apiId": api, "stage": "test"}]
        plan = await stage.call(stage.root, "apigateway", "CreateUsagePlan", name="q", apiStages=stages)
        named = {"usagePlanId": plan["id"]}
        refusal = await stage.refusal(stage.root, "apigateway", "DeleteUsagePlan", **named)
        assert refusal.startswith("BadRequestException: Cannot delete usage plan because it has")
        await stage.call(stage.root, "apigateway", "DeleteRestApi", restApiId=api)
        await stage.call(stage.root, "apigateway", "DeleteUsagePlan", **named)

    played(play)


@pytest.mark.parametrize("operation", ["ImportRestApi", "PutRestApi"])
def test_a_definition_is_an_api_as_amazon_reads_it(operation: str) -> None:
    async def play(stage: Stage, api: str, resource: str) -> None:
        assert resource
        kept = operations_of([("add", "/binaryMediaTypes/image~1png", None)])
        await stage.call(stage.root, "apigateway", "UpdateRestApi", restApiId=api, patchOperations=kept)
        method = {
            "responses": {},
            "x-amazon-apigateway-integration": {"type": "mock", "httpMethod": "POST"},
        }
        document = {
            "swagger": "2.0",
            "info": {"title": "Rental"},
            "x-amazon-apigateway-binary-media-types": ["image/gif"],
            "definitions": {
                "Empty": {"type": "object"},
                "Car": {"properties": {"owner": {"$ref": "#/definitions/Owner"}}},
                "Owner": {"properties": {"car": {"$ref": "#/definitions/Car"}}},
            },
            "paths": {"/cars/{car_id}": {"get": method}},
        }
        place = {"restApiId": api} if operation == "PutRestApi" else {}
        made = await stage.call(stage.root, "apigateway", operation, body=orjson.dumps(document), **place)
        is_import = operation == "ImportRestApi"
        assert made["tags"] == {}
        assert made["binaryMediaTypes"] == [*([] if is_import else ["image/png"]), "image/gif"]
        named = {"restApiId": made["id"]}
        models = (await stage.call(stage.root, "apigateway", "GetModels", **named))["items"]
        by_name = {model["name"]: model for model in models}
        assert by_name.keys() == {"Car", "Empty", "Owner", *([] if is_import else ["Error"])}
        assert "description" not in by_name["Empty"]
        assert orjson.loads(by_name["Car"]["schema"]) == {
            "properties": {
                "owner": {"$ref": f"https://apigateway.amazonaws.com/restapis/{made['id']}/models/Owner"}
            }
        }
        resources = await stage.call(stage.root, "apigateway", "GetResources", **named, embed=["methods"])
        (shown,) = [item["resourceMethods"]["GET"] for item in resources["items"] if "{" in item["path"]]
        assert shown["requestParameters"] == {"method.request.path.car_id": True}
        assert "httpMethod" not in shown["methodIntegration"]

    played(play)


def test_a_private_api_is_dualstack() -> None:
    async def play(stage: Stage) -> None:
        endpoints = {"types": ["PRIVATE"]}
        made = await stage.call(
            stage.root, "apigateway", "CreateRestApi", name="x", endpointConfiguration=endpoints
        )
        assert made["endpointConfiguration"] == {"types": ["PRIVATE"], "ipAddressType": "dualstack"}

    on_stage(play, auth="off")
