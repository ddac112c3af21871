"""Operations on exports: values that stacks of an account share within a region."""

from redrive.aws.cloudformation.documents.errors import PAGES, invalid
from redrive.aws.cloudformation.documents.finding import place
from redrive.aws.cloudformation.documents.history import EXPORT, IMPORT, export_key
from redrive.aws.cloudformation.documents.records import STACK
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


class ExportOperations:
    """Lists exports, and who uses them."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def list_exports(self, call: Call, params: Structure) -> Structure:
        exports = await self._documents.find(EXPORT, f"{call.account}/{call.region}/")
        page, token = PAGES.cut("ListExports", params, exports)
        items = []
        for export in page:
            stack = await self._documents.get(STACK, export.stack)
            owner = {} if stack is None else {"ExportingStackId": stack.arn}
            items.append({"Name": export.name, "Value": export.value, **owner})
        return {"Exports": items, **token}

    async def list_imports(self, call: Call, params: Structure) -> Structure:
        name = params["ExportName"]
        importers = await self._documents.find(IMPORT, f"{export_key(place(call, ''), name)}/")
        if not importers:
            raise invalid(f"Export '{name}' is not imported by any stack.")
        return PAGES.of("ListImports", params, importers, lambda importer: importer.stack_name)
