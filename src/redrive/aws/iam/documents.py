"""Policy documents: what IAM takes of them, and how it hands them back."""

import json
from typing import Final
from urllib.parse import quote

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import Form, new_policy
from redrive.aws.iam.errors import malformed, too_many
from redrive.aws.iam.policy_faults import fault_of

_NO_JSON: Final = {
    Form.IDENTITY: "Syntax errors in policy.",
    Form.TRUST: "This policy contains invalid Json",
}
_PROHIBITED: Final = {
    Form.IDENTITY: "Policy document should not specify a principal.",
    Form.TRUST: "Has prohibited field Resource",
}


def check_document(text: str, form: Form, chars_max: int, quota: str, *, is_managed: bool = False) -> None:
    """Refuse a policy document that IAM would not take; blanks do not count.

    Args:
        text: The document.
        form: What it is for.
        chars_max: How many characters it may have.
        quota: What that number is called where it is exceeded.
        is_managed: Whether it is a managed policy's, which has to be of the latest version.

    Raises:
        AwsError: `MalformedPolicyDocument` or `LimitExceeded`.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise malformed(_NO_JSON[form]) from None
    if isinstance(document, dict) and any(
        form.value & statement.keys() for statement in _statements(document)
    ):
        raise malformed(_PROHIBITED[form])
    if fault := fault_of(document, form, is_managed=is_managed):
        raise malformed(fault)
    if len("".join(text.split())) > chars_max:
        raise too_many(f"{quota}: {chars_max}")
    try:
        new_policy(text, form)
    except PolicyInvalid as problem:
        raise malformed(f"Syntax errors in policy. {problem}") from None


def _statements(document: dict[str, object]) -> list[dict[str, object]]:
    stated = document.get("Statement")
    listed = stated if isinstance(stated, list) else [stated]
    return [statement for statement in listed if isinstance(statement, dict)]


def handed_back(text: str) -> str:
    """A document as answers have it."""
    return quote(text, safe="")
