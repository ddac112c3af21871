"""Condition keys: those whose value is known of every request, or known not to be there.

"AWS global condition context keys" (IAM user guide), "Condition keys for Amazon SNS" (service authorization reference). A
policy may ask about any other key; as nobody knows what the answer would be, a statement that denies holds then, and one
that allows does not.
"""

from typing import Final

#: Those that time changes: an answer that asked about them is good for its moment alone.
OF_TIME: Final = frozenset({"aws:currenttime", "aws:epochtime"})

#: Those that a request has where they apply: from the connection, the call, the caller, or the session.
SUPPLIED: Final = OF_TIME | {
    "aws:principalaccount",
    "aws:principalarn",
    "aws:principalisawsservice",
    "aws:principalservicename",
    "aws:principaltype",
    "aws:referer",
    "aws:requestedregion",
    "aws:resourceaccount",
    "aws:securetransport",
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceidentity",
    "aws:sourceip",
    "aws:tokenissuetime",
    "aws:sourceowner",
    "aws:useragent",
    "aws:userid",
    "aws:username",
    "aws:viaawsservice",
    "iam:awsservicename",
    "iam:passedtoservice",
    "iam:permissionsboundary",
    "iam:policyarn",
    "lambda:functionurlauthtype",
    "lambda:invokedviafunctionurl",
    "sns:endpoint",
    "sns:protocol",
    "sts:externalid",
    "sts:rolesessionname",
    "sts:sourceidentity",
}

#: Those of parts of Amazon that do not exist here, so that no request has them: organizations, private networks,
#: federations, second factors.
ABSENT: Final = frozenset(
    {
        "aws:assumedroot",
        "aws:calledvia",
        "aws:calledviafirst",
        "aws:calledvialast",
        "aws:chatbotsourcearn",
        "aws:ec2instancesourceprivateipv4",
        "aws:ec2instancesourcevpc",
        "aws:federatedprovider",
        "aws:multifactorauthage",
        "aws:multifactorauthpresent",
        "aws:principalorgid",
        "aws:principalorgpaths",
        "aws:resourceorgid",
        "aws:resourceorgpaths",
        "aws:sourceinstancearn",
        "aws:sourceorgid",
        "aws:sourceorgpaths",
        "aws:sourcevpc",
        "aws:sourcevpcarn",
        "aws:sourcevpce",
        "aws:vpceaccount",
        "aws:vpceorgid",
        "aws:vpceorgpaths",
        "aws:vpcsourceip",
    }
)
#: What stands before the name of a principal's tag.
PRINCIPAL_TAG: Final = "aws:principaltag/"
# "Condition keys for AWS KMS": those that its requests have are supplied, and no other service's requests have any.
_KMS_PREFIX: Final = "kms:"
_KNOWN: Final = SUPPLIED | ABSENT


def is_known(key: str) -> bool:
    """True if a request's value of a key, in lower case, is known, be it that there is none."""
    return key in _KNOWN or key.startswith((PRINCIPAL_TAG, _KMS_PREFIX))
