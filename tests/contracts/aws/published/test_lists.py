"""Lists by their published paginators: more than a page, none lost, none twice, foreign tokens refused."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jmespath  # type: ignore[import-untyped]  # botocore's own dependency
import pytest
from botocore.exceptions import ClientError

from redrive.aws.services import FOLDERS
from tests.contracts.aws.published.conftest import Published
from tests.contracts.aws.published.worlds import NO_LISTS, WORLDS, Listed
from tests.services.clients import Client

_OF_OPERATIONS: Final = {"ListMetrics": "InvalidParameterValue"}
#: Lists of S3 that begin behind any key, whoever names it.
_BEHIND_KEYS: Final = {"ListObjects", "ListMultipartUploads", "ListParts"}


@pytest.mark.parametrize("service", FOLDERS)
def test_pages_have_everything_once_and_only_their_own_tokens(published: Published, service: str) -> None:
    published.server.reset()
    world, api = WORLDS.get(service, NO_LISTS), published.of(service)
    lists = world.lists(published)
    paginators = {
        name: method for method, name in api.meta.method_to_api_mapping.items() if api.can_paginate(method)
    }
    assert lists.keys() == {name for name in paginators if published.offers(service, name)}
    tokens: dict[str, str] = {}
    for operation, listed in lists.items():
        paginator = api.get_paginator(paginators[operation])
        if listed.count:
            config = {"PageSize": listed.size} if "limit_key" in paginator._pagination_cfg else {}
            pages = list(paginator.paginate(**listed.params, PaginationConfig=config))
            _check_pages(operation, listed, [_items(paginator, page) for page in pages])
            if operation not in _BEHIND_KEYS:
                tokens[operation] = _token(paginator, pages[0])
    for operation in lists.keys() - _BEHIND_KEYS:
        genuine = tokens.get(operation, "")
        foreign = [token for other, token in tokens.items() if other != operation]
        spoilt = [f"{'B' if genuine[0] == 'A' else 'A'}{genuine[1:]}"] if genuine else []
        for token in ("nonsense", *foreign[:1], *spoilt):
            code = _OF_OPERATIONS.get(operation, world.refusal)
            assert _refusal(published, service, operation, lists[operation].params, token) == code, (
                operation,
                token,
            )


def _check_pages(operation: str, listed: Listed, pages: Sequence[list[Any]]) -> None:
    items = [json.dumps(item, default=str, sort_keys=True) for page in pages for item in page]
    assert (len(items), len(set(items))) == (listed.count, listed.count), operation
    full, rest = divmod(listed.count, listed.size)
    assert [len(page) for page in pages if page] == [listed.size] * full + [rest] * (rest > 0), operation


def _items(paginator: Any, page: Any) -> list[Any]:
    return [item for key in paginator.result_keys for item in key.search(page) or ()]


def _token(paginator: Any, page: Any) -> str:
    found = jmespath.search(paginator._pagination_cfg["output_token"], page)
    return str(found)


def _refusal(
    published: Published, service: str, operation: str, params: Mapping[str, Any], token: str
) -> str:
    api: Client = published.of(service)
    methods = {name: method for method, name in api.meta.method_to_api_mapping.items()}
    config = api.get_paginator(methods[operation])._pagination_cfg
    with pytest.raises(ClientError) as caught:
        published.call(service, operation, **params, **{config["input_token"]: token})
    return caught.value.response["Error"]["Code"]
