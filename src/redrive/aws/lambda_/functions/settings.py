"""Reserved concurrency, what an account may have and has, and settings that are the same for every function here.

Those are code signing, the end of loops, and updates of runtimes. Terraform and SAM read them with every function, and
write back what they read.
"""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.backlogs import update_backlogs_in
from redrive.aws.lambda_.documents.errors import (
    PAGES,
    absent_as,
    error,
    invalid,
    no_function,
    typeless,
    unoffered,
)
from redrive.aws.lambda_.documents.layer_records import LAYER_VERSION
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, key_beginning
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference
from redrive.aws.lambda_.documents.records import FUNCTION, PROVISIONED, VERSION, FunctionRecord
from redrive.aws.lambda_.functions.archives import UNZIPPED_BYTES_MAX, ZIPPED_BYTES_MAX
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Documents, Draft

CONCURRENT_MAX: Final = 1000  # the default of an account
UNRESERVED_MIN: Final = 100
_CODE_BYTES_MAX: Final = 80_530_636_800


class ConcurrencyOperations:
    """Reserves concurrency, and says what there is."""

    def __init__(self, engine: Engine, lookup: Lookup) -> None:
        self._engine = engine
        self._lookup = lookup

    async def put_function_concurrency(self, call: Call, params: Structure) -> Structure:
        reference = _check_unqualified(names.read(call, params["FunctionName"]))
        # Recorded: what is missing is called by its version here, unlike anywhere else.
        with absent_as(no_function(FunctionReference(reference.name, LATEST).arn)):
            await self._lookup.function(call, reference, "PutFunctionConcurrency")
        requested: int = params["ReservedConcurrentExecutions"]
        configs = await self._engine.resources.documents.find(PROVISIONED, key_beginning(reference.name))
        provisioned = sum(config.wanted for config in configs)
        if requested < provisioned:
            raise invalid(
                f" ReservedConcurrentExecutions  {requested} should not be lower than function's total provisioned"
                f" concurrency [{provisioned}]."
            )
        others = await reserved_by(self._engine.resources.documents, reference)
        if CONCURRENT_MAX - others - requested < UNRESERVED_MIN:
            raise typeless(
                "Specified ReservedConcurrentExecutions for function decreases account's"
                f" UnreservedConcurrentExecution below its minimum value of [{UNRESERVED_MIN}]."
            )
        await self._reserve(reference, requested)
        return {"ReservedConcurrentExecutions": requested}

    async def get_function_concurrency(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        function = await self._lookup.function(call, reference, "GetFunctionConcurrency")
        return {} if function.reserved is None else {"ReservedConcurrentExecutions": function.reserved}

    async def delete_function_concurrency(self, call: Call, params: Structure) -> Structure:
        reference = _check_unqualified(names.read(call, params["FunctionName"]))
        await self._lookup.function(call, reference, "DeleteFunctionConcurrency")
        await self._reserve(reference, None)
        return {}

    async def _reserve(self, reference: FunctionReference, requested: int | None) -> None:
        """Store the reserved concurrency (None: none), which the backlogs of its events heed, too."""

        async def decide(draft: Draft) -> None:
            function = replace(await function_in(draft, reference), reserved=requested)
            draft.put(FUNCTION, reference.name.key, function)
            await update_backlogs_in(draft, self._engine.resources, function)

        await self._engine.resources.write(decide)

    async def get_account_settings(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as a Verb
        beginning = f"{call.account}/{call.region}/"
        documents = self._engine.resources.documents
        functions = await documents.find(FUNCTION, beginning)
        versions = await documents.find(VERSION, beginning)
        layers = await documents.find(LAYER_VERSION, beginning)
        reserved = sum(function.reserved or 0 for function in functions)
        code = sum(each.code_bytes for each in [*(function.latest for function in functions), *versions])
        code += sum(layer.code_bytes for layer in layers)
        return {
            "AccountLimit": {
                "CodeSizeUnzipped": UNZIPPED_BYTES_MAX,
                "CodeSizeZipped": ZIPPED_BYTES_MAX,
                "ConcurrentExecutions": CONCURRENT_MAX,
                "TotalCodeSize": _CODE_BYTES_MAX,
                "UnreservedConcurrentExecutions": CONCURRENT_MAX - reserved,
            },
            "AccountUsage": {"FunctionCount": len(functions), "TotalCodeSize": code},
        }


async def reserved_by(documents: Documents, reference: FunctionReference) -> int:
    """The concurrency that the other functions of an account's region have reserved."""
    functions = await documents.find(FUNCTION, f"{reference.name.account}/{reference.name.region}/")
    return sum(function.reserved or 0 for function in functions if function.name != reference.name)


def _check_unqualified(reference: FunctionReference) -> FunctionReference:
    if reference.qualifier is not None:
        raise invalid(
            "This operation is permitted on Lambda functions only. Aliases and versions do not support this operation."
            " Please specify either a function name or an unqualified function ARN."
        )
    return reference


class FixedSettings:
    """Answers with them, and refuses any others."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    # ---- code signing: there is never a configuration -------------------------------------------------------

    async def get_function_code_signing_config(self, call: Call, params: Structure) -> Structure:
        function = await self._function(call, params, "GetFunctionCodeSigningConfig")
        return {"FunctionName": function.name.name}

    async def put_function_code_signing_config(self, call: Call, params: Structure) -> Structure:
        await self._function(call, params, "PutFunctionCodeSigningConfig")
        raise error(
            "CodeSigningConfigNotFoundException",
            "The code signing configuration cannot be found. Check that the provided code signing configuration is not"
            f" deleted: {params['CodeSigningConfigArn']}.",
        )

    async def delete_function_code_signing_config(self, call: Call, params: Structure) -> Structure:
        await self._function(call, params, "DeleteFunctionCodeSigningConfig")
        return {}

    async def list_code_signing_configs(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as a Verb
        return PAGES.of("ListCodeSigningConfigs", params, (), str)

    # ---- loops are ended: see `rounds` -----------------------------------------------------------------------

    async def get_function_recursion_config(self, call: Call, params: Structure) -> Structure:
        await self._function(call, params, "GetFunctionRecursionConfig")
        return {"RecursiveLoop": "Terminate"}

    async def put_function_recursion_config(self, call: Call, params: Structure) -> Structure:
        await self._function(call, params, "PutFunctionRecursionConfig")
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

    async def _function(self, call: Call, params: Structure, action: str) -> FunctionRecord:
        return await self._lookup.function(call, names.read(call, params["FunctionName"]), action)
