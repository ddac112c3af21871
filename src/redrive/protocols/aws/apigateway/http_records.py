"""Documents of HTTP APIs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.protocols.aws.apigateway.records import Tree, api_key

DEFAULT_STAGE: Final = "$default"


@dataclass(frozen=True, slots=True)
class HttpApi(Document):
    """An HTTP API as its owner edits it; stages that deploy by themselves show it so.

    Attributes:
        account: Whose it is.
        region: Where.
        id: Ten letters and digits.
        created_at: ms.
        settings: Its members in the published model, besides those above.
        tree: Its routes, integrations and stages, by id or name.
        tags: By key.
    """

    account: str
    region: str
    id: str
    created_at: int
    settings: Tree
    tree: Tree
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the document."""
        return api_key(self.account, self.region, self.id)


HTTP_API: Final[DocumentKind[HttpApi]] = DocumentKind(
    "apigateway_http_api", HttpApi.to_document, HttpApi.from_document
)
