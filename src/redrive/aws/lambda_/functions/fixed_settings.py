"""Settings that are the same for every function here: code signing, the end of loops, updates of runtimes.

Terraform and SAM read them with every function, and write back what they read.
"""

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import PAGES, error, unoffered
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.wire.shapes import Structure


class FixedSettings:
    """Answers with them, and refuses any others."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    # ---- code signing: there is never a configuration -------------------------------------------------------

    async def get_function_code_signing_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        function = await self._lookup.function(call, reference, "GetFunctionCodeSigningConfig")
        return {"FunctionName": function.name.name}

    async def put_function_code_signing_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "PutFunctionCodeSigningConfig")
        raise error(
            "CodeSigningConfigNotFoundException",
            "The code signing configuration cannot be found. Check that the provided code signing configuration is not"
            f" deleted: {params['CodeSigningConfigArn']}.",
        )

    async def delete_function_code_signing_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "DeleteFunctionCodeSigningConfig")
        return {}

    async def list_code_signing_configs(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as a Verb
        return PAGES.of("ListCodeSigningConfigs", params, (), str)

    # ---- loops are ended: see `rounds` -----------------------------------------------------------------------

    async def get_function_recursion_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "GetFunctionRecursionConfig")
        return {"RecursiveLoop": "Terminate"}

    async def put_function_recursion_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        await self._lookup.function(call, reference, "PutFunctionRecursionConfig")
        if params["RecursiveLoop"] != "Terminate":
            raise unoffered(f"RecursiveLoop {params['RecursiveLoop']}")
        return {"RecursiveLoop": "Terminate"}

    # ---- the machine has one runtime of a kind ----------------------------------------------------------------

    async def get_runtime_management_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        await self._lookup.authorized_target(call, reference, "GetRuntimeManagementConfig")
        return {"FunctionArn": reference.arn, "UpdateRuntimeOn": "Auto"}

    async def put_runtime_management_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        await self._lookup.authorized_target(call, reference, "PutRuntimeManagementConfig")
        if params["UpdateRuntimeOn"] != "Auto":
            raise unoffered(f"UpdateRuntimeOn {params['UpdateRuntimeOn']}")
        return {"FunctionArn": reference.arn, "UpdateRuntimeOn": "Auto"}
