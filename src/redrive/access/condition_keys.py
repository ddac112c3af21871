"""Condition keys: those whose value is known of every request, or known not to be there.

"AWS global condition context keys" (IAM user guide), "Condition keys for Amazon SNS" (service authorization reference). A
policy may ask about any other key; as nobody knows what the answer would be, a statement that denies holds then, and one
that allows does not.
"""

from typing import Final

#: Those that time changes: an answer that asked about them is good for its moment alone.
OF_TIME: Final = frozenset({"aws:currenttime", "aws:epochtime"})

#: Those that a request has where they apply: from the connection, the call, or the caller.
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
    "aws:sourceip",
    "aws:sourceowner",
    "aws:useragent",
    "aws:userid",
    "aws:username",
    "aws:viaawsservice",
    "sns:endpoint",
    "sns:protocol",
}

#: Those of parts of Amazon that do not exist here, so that no request has them: organizations, private networks,
#: sessions and federations, second factors, tags of principals.
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
        "aws:sourceidentity",
        "aws:sourceinstancearn",
        "aws:sourceorgid",
        "aws:sourceorgpaths",
        "aws:sourcevpc",
        "aws:sourcevpcarn",
        "aws:sourcevpce",
        "aws:tokenissuetime",
        "aws:vpceaccount",
        "aws:vpceorgid",
        "aws:vpceorgpaths",
        "aws:vpcsourceip",
    }
)
_ABSENT_PREFIX: Final = "aws:principaltag/"
_KNOWN: Final = SUPPLIED | ABSENT


def is_known(key: str) -> bool:
    """True if a request's value of a key, in lower case, is known, be it that there is none."""
    return key in _KNOWN or key.startswith(_ABSENT_PREFIX)
