"""Platform applications: create, find, change, delete."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Final

from redrive.aws.kit.attributes import BOOLEAN, PERCENTAGE, ROLE_ARN
from redrive.aws.kit.call import Call
from redrive.aws.sns.devices import events, platform
from redrive.aws.sns.devices.platform import APPLICATION, Application, ApplicationName
from redrive.aws.sns.documents import values
from redrive.aws.sns.documents.errors import PAGES, AttributeRefused, attributes_error, invalid, no_such
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.violations import Violation, ViolationKind, coral_error
from redrive.engine.engine import Engine
from redrive.model.errors import Conflict, NotFound

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_NAME_CHARS_MAX: Final = 256
_PAIR: Final = ("PlatformPrincipal", "PlatformCredential")
_SECRETS: Final = frozenset(
    {
        "PlatformCredential",
        "PlatformPrincipal",
        "ApplePlatformTeamID",
        "ApplePlatformBundleID",
    }
)
_ROLES: Final = frozenset({"SuccessFeedbackRoleArn", "FailureFeedbackRoleArn"})
_RATE: Final = "SuccessFeedbackSampleRate"


class PlatformApplicationOperations:
    """Operations on platform applications.

    Credentials are kept without a check: wrong ones show when a message is pushed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._documents = engine.resources.documents

    async def create_platform_application(self, call: Call, params: Structure) -> Structure:
        name = ApplicationName(call.account, call.region, params["Platform"], params["Name"])
        attributes: Mapping[str, str] = params["Attributes"]
        _check_name(name)
        _check_credentials(name.platform, attributes)
        new_application = _with_attributes(Application(name, {platform.ENABLED: "true"}), attributes)
        try:
            await self._documents.create(APPLICATION, name.key, new_application)
        except Conflict:
            existing = await self._documents.get(APPLICATION, name.key)
            if existing != new_application:
                raise invalid(
                    "Name Reason: An application with the same name but different properties already exists"
                ) from None
        return {"PlatformApplicationArn": name.arn}

    async def get_platform_application_attributes(self, call: Call, params: Structure) -> Structure:
        name = platform.application_in(
            call, params["PlatformApplicationArn"], "GetPlatformApplicationAttributes"
        )
        application = await self._documents.get(APPLICATION, name.key)
        if application is None:
            raise no_such("PlatformApplication")
        return {"Attributes": _attribute_texts(application)}

    async def set_platform_application_attributes(self, call: Call, params: Structure) -> Structure:
        name = platform.application_in(
            call, params["PlatformApplicationArn"], "SetPlatformApplicationAttributes"
        )
        attributes: Mapping[str, str] | None = params.get("Attributes")
        if attributes is None:
            raise coral_error([Violation("attributes", ViolationKind.REQUIRED, None, None)])
        try:
            await self._documents.update(
                APPLICATION, name.key, lambda current: _with_attributes(current, attributes)
            )
        except NotFound:
            raise no_such("PlatformApplication") from None
        return {}

    async def list_platform_applications(self, call: Call, params: Structure) -> Structure:
        operation, prefix = "ListPlatformApplications", f"{call.account}/{call.region}/"
        after = PAGES.after(operation, params)
        applications = await self._documents.find(APPLICATION, prefix, after, PAGES.size + 1)

        def as_structure(application: Application) -> Structure:
            return {
                "PlatformApplicationArn": application.name.arn,
                "Attributes": _attribute_texts(application),
            }

        return PAGES.of(
            operation, params, applications, as_structure, lambda application: application.name.key
        )

    async def delete_platform_application(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_DeletePlatformApplication.html; its endpoints, too."""
        name = platform.application_in(call, params["PlatformApplicationArn"], "DeletePlatformApplication")
        resources = self._engine.resources
        while not await resources.write(lambda draft: platform.remove_application_in(resources, draft, name)):
            pass
        return {}


def _check_name(name: ApplicationName) -> None:
    if name.platform not in platform.PLATFORMS:
        raise invalid(f"Platform Reason: {name.platform} is not supported")
    if not name.name:
        raise invalid(" Reason: cannot be empty")
    if len(name.name) > _NAME_CHARS_MAX:
        raise invalid(f"{name.name} Reason: must be at most {_NAME_CHARS_MAX} characters long")
    if not _NAME.fullmatch(name.name):
        raise invalid(
            f"{name.name} Reason: must contain only characters 'a'-'z', 'A'-'Z', '0'-'9', '_', '-', and '.'"
        )


def _check_credentials(platform_name: str, attributes: Mapping[str, str]) -> None:
    """Refuse credentials without the members that the platform needs: a credential, and for some also a principal."""
    has_principal = platform.PLATFORMS[platform_name]
    for name, other_name in permutations(_PAIR):
        if has_principal and name in attributes and other_name not in attributes:
            raise attributes_error(AttributeRefused(f"{name} attribute provided without {other_name}"))
    required_names = ["PlatformCredential", *(["PlatformPrincipal"] if has_principal else [])]
    if not all(map(attributes.get, required_names)):
        raise attributes_error(AttributeRefused("Platform credentials are invalid"))


def _with_attributes(application: Application, attributes: Mapping[str, str]) -> Application:
    try:
        new_values = {
            name: _checked_value(application.name, name, value) for name, value in attributes.items()
        }
    except AttributeRefused as refusal:
        raise attributes_error(refusal) from None
    return replace(application, attributes={**application.attributes, **new_values})


def _checked_value(application: ApplicationName, name: str, value: str) -> str:
    """The value of an attribute as it is stored; raises AttributeRefused."""
    opening = "Invalid value for attribute: "
    if name in _SECRETS:
        return value
    if name in events.NAMES:
        return _checked_topic_arn(application, f"{opening}{name}", value) if value else value
    if name == platform.ENABLED:
        return str(values.read(BOOLEAN, f"{opening}{name}", value)).lower()
    if name in _ROLES:
        return values.read(ROLE_ARN, f"{opening}{name}", value) if value else value
    if name == _RATE:
        return values.read(PERCENTAGE, f"{opening}{name}", value)
    raise AttributeRefused(f"Invalid attribute name: {name}")  # chosen


def _checked_topic_arn(application: ApplicationName, name: str, value: str) -> str:
    topic = events.topic_at(value)
    if topic is None or (topic.account, topic.region) != (application.account, application.region):
        text = f"{name}: {value} is not the ARN of a standard topic of this account and region"  # chosen
        raise AttributeRefused(text)
    return value


def _attribute_texts(application: Application) -> dict[str, str]:
    return {name: value for name, value in application.attributes.items() if name not in _SECRETS}
