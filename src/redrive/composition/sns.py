"""Amazon SNS, with the parts that other extensions add to it."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.sns.confirmations import latest_token
from redrive.aws.sns.dialect import SnsDeliveryProfile
from redrive.aws.sns.facade import Sns
from redrive.aws.sns.notifications.notification import Links
from redrive.aws.sns.notifications.notification_renderer import NotificationRenderer
from redrive.aws.sns.notifications.published import CONFIRMATION_ENVELOPE, ENVELOPE
from redrive.aws.sns.notifications.signing import PATH_BEGINNING, Signer, certificate_path
from redrive.aws.sns.notifications.unsubscribing import UnsubscribeTokens
from redrive.aws.sns.parts import SnsPart
from redrive.aws.sns.service import SERVICE
from redrive.aws.sns.status_log import StatusLog
from redrive.aws.wire.errors import AwsError
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.model.http import Request, Response
from redrive.server.owned import json_answer

# As LocalStack has it. Who has a token can confirm the subscription of somebody else's endpoint: for tests alone.
_TOKENS: Final = "/_aws/sns/subscription-tokens"


def extension(core: Core, parts: Sequence[SnsPart], encryption: Encryption | None = None) -> Extension:
    """Notifications are signed with the installation's key, whose certificate is served here.

    `encryption` knows the keys of topics.
    """
    settings, signer = core.settings, Signer(core.pair)
    path = certificate_path(core.pair)
    renderers = {protocol: render for part in parts for protocol, render in part.renderers.items()}
    links = Links(core.base_url, path, UnsubscribeTokens(core.secret))
    renderer = NotificationRenderer(links, signer, renderers)
    profile = SnsDeliveryProfile(
        renderer,
        core.runtime.clock,
        open_queues=settings.auth == "off",
        client_errors_delivered=settings.client_errors_count_as_delivered,
    )
    logs = {protocol: log for part in parts for protocol, log in part.logs.items()}
    status_log = StatusLog(core.telemetry.logs, core.runtime.rng, core.stream, logs)

    async def certificate(request: Request) -> Response:
        if request.path != path:
            return Response(404, b"", "text/plain")
        return Response(200, core.pair.pem, "application/x-pem-file")

    async def subscription_token(request: Request) -> Response:
        arn = unquote(request.path.removeprefix(f"{_TOKENS}/"))
        try:
            caller = await core.authentication.caller(request, "sns")
        except AwsError as error:
            return json_answer(error.status, {"message": error.message})
        owned = settings.auth == "off" or f":{caller.principal.account}:" in arn
        token = await latest_token(core.engine.resources.documents, arn) if owned else None
        if token is None:
            return json_answer(404, {"message": f"no token for {arn}"})
        return json_answer(200, {"subscription_token": token, "subscription_arn": arn})

    async def close() -> None:
        signer.close()

    return Extension(
        interface=Interface(
            services={
                "sns": Sns(
                    core.engine,
                    parts,
                    core.secret,
                    core.sessions.identities,
                    settings.filter_policies_max,
                    encryption,
                )
            },
            paths={
                PATH_BEGINNING: certificate,
                **({_TOKENS: subscription_token} if settings.allow_reset else {}),
            },
            kinds=[*SERVICE.documents, *(kind for part in parts for kind in part.kinds)],
        ),
        delivery=DeliveryParts(
            profiles={"sns": profile},
            listeners=[(status_log, ("sns",))],
            presenters={ENVELOPE: renderer.present, CONFIRMATION_ENVELOPE: renderer.present},
        ),
        lifecycle=Lifecycle(
            close=(close,),
        ),
    )
