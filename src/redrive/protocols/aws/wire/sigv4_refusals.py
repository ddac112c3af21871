"""How a request without a good signature is answered: the codes, sentences and statuses of AWS services."""

from typing import ClassVar


class SignatureRefused(Exception):  # noqa: N818 - these are answers, named as a caller says them
    """The caller is not who the request says, or the request does not say.

    Attributes:
        code: The query and REST-XML protocols' error code.
        json_code: The JSON and REST-JSON protocols' name for the same.
        status: The query protocol's HTTP status.
        message: The service's sentence.
    """

    code: ClassVar[str]
    json_code: ClassVar[str]
    status: ClassVar[int] = 403

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MissingToken(SignatureRefused):
    """The request carries no signature of this version."""

    code = "MissingAuthenticationToken"
    json_code = "MissingAuthenticationTokenException"

    def __init__(self) -> None:
        super().__init__("Request is missing Authentication Token")


class IncompleteSignature(SignatureRefused):
    """A part of the signature is absent or cannot be read."""

    code = "IncompleteSignature"
    json_code = "IncompleteSignatureException"
    status = 400


class UnknownKey(SignatureRefused):
    """Nobody has that access key, or it was switched off."""

    code = "InvalidClientTokenId"
    json_code = "UnrecognizedClientException"

    def __init__(self) -> None:
        super().__init__("The security token included in the request is invalid.")


class SignatureMismatch(SignatureRefused):
    """The request is not the one that was signed, or not now, or not here."""

    code = "SignatureDoesNotMatch"
    json_code = "InvalidSignatureException"

    def __init__(
        self,
        message: str = (
            "The request signature we calculated does not match the signature you provided. Check your AWS "
            "Secret Access Key and signing method. Consult the service documentation for details."
        ),
    ) -> None:
        super().__init__(message)
