"""Text messages as a part of SNS."""

from redrive.aws.sns.direct import Direct
from redrive.aws.sns.part import SnsPart
from redrive.aws.sns.sms.attributes import SMS_ATTRIBUTES, SmsAttributeOperations
from redrive.aws.sns.sms.opt_outs import OPT_OUT, OptOuts
from redrive.aws.sns.sms.sandbox import SANDBOX_NUMBER, SandboxOperations
from redrive.aws.sns.sms.telephones import CORRESPONDENT, SPENT
from redrive.aws.sns.sms.text_messages import TextMessages
from redrive.engine.engine import Engine


def text_messages(engine: Engine) -> SnsPart:
    """Attributes, opt-outs and the sandbox; texts as their accounts have set them."""
    documents = engine.resources.documents
    opt_outs = OptOuts(documents)
    return SnsPart(
        operations=(
            SmsAttributeOperations(documents),
            SandboxOperations(engine, Direct(engine, opt_outs)),
            opt_outs,
        ),
        renderers={"sms": TextMessages(documents).render},
        kinds=(CORRESPONDENT, OPT_OUT, SANDBOX_NUMBER, SMS_ATTRIBUTES, SPENT),
    )
