"""Financial data: accounts and cards."""

import re
from typing import Final

from stdnum import iban, luhn

from redrive.aws.sns.protection.identifiers.rows import IdentifierRow, Rows, valid

_ACCOUNT: Final = (
    "account code, account number, accountno#, accountnumber#, bban, customer account id, customer account number,"
    " customer bank account id, iban"
)
_EXPIRY: Final = (
    "exp d, exp date, exp m, exp month, exp y, exp year, expiration, expiration date, expiration month, expiration year,"
    " expiry, expiry date, expiry month, expiry year"
)

# Beginnings that Visa, Mastercard, American Express, Diner's Club, Discover, JCB, UnionPay and Dankort have.
_ISSUERS: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}"
    r"|3(?:0[0-59]|[689][0-9])[0-9]{11,16}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12,15}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"
    r"|(?:62|81)[0-9]{14,17}"
    r"|5019[0-9]{12}"
)
# In one piece, or in fours, or as American Express and Diner's Club have it, with blanks or with hyphens.
_CARD: Final = "[0-9]{13,19}|" + "|".join(
    f"[0-9]{{4}}{gap}[0-9]{{4}}{gap}[0-9]{{4}}{gap}[0-9]{{4}}(?:{gap}[0-9]{{3}})?|[0-9]{{4}}{gap}[0-9]{{6}}{gap}[0-9]{{4,5}}"
    for gap in (" ", "-")
)
# Reserved for tests: "Amazon SNS doesn't report occurrences of the following sequences".
_RESERVED: Final = frozenset(
    """
    122000000000003 2222405343248877 2222990905257051 2223007648726984 2223577120017656 30569309025904
    34343434343434 3528000700000000 3530111333300000 3566002020360505 36148900647913 36700102000000
    371449635398431 378282246310005 378734493671000 38520000023237 4012888888881881 4111111111111111
    4222222222222 4444333322221111 4462030000000000 4484070000000000 4911830000000 4917300800000000
    4917610000000000 4917610000000000003 5019717010103742 5105105105105100 5111010030175156 5185540810000019
    5200828282828210 5204230080000017 5204740009900014 5420923878724339 5454545454545454 5455330760000018
    5506900490000436 5506900490000444 5506900510000234 5506920809243667 5506922400634930 5506927427317625
    5553042241984105 5555553753048194 5555555555554444 5610591081018250 6011000990139424 6011000400000000
    6011111111111117 630490017740292441 630495060000000000 6331101999990016 6759649826438453
    6799990100000000019 76009244561
    """.split()  # noqa: SIM905 - a table, not a list of 59 lines
)


def _is_card(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    return digits not in _RESERVED and _ISSUERS.fullmatch(digits) is not None and bool(luhn.is_valid(digits))


def _iban(country: str, rest: str, keywords: str) -> IdentifierRow:
    return IdentifierRow(f"{country}[0-9]{{2}} ?{rest}", f"{_ACCOUNT}, {keywords}", valid(iban))


ROWS: Final[Rows] = {
    "BankAccountNumber-DE": _iban(
        "DE",
        "(?:[0-9] ?){17}[0-9]",
        "bankleitzahl, geheimzahl, kartennummer, kontonummer, kreditkartennummer, sepa",
    ),
    "BankAccountNumber-ES": _iban(
        "ES",
        "(?:[0-9] ?){19}[0-9]",
        "código cuenta, código cuenta bancaria, cuenta cliente id, número cuenta bancaria cliente,"
        " número cuenta cliente",
    ),
    "BankAccountNumber-FR": _iban(
        "FR", "(?:[0-9A-Z] ?){22}[0-9A-Z]", "code bancaire, compte bancaire, numéro de compte"
    ),
    "BankAccountNumber-GB": _iban("GB", "[A-Z]{4} ?(?:[0-9] ?){13}[0-9]", "sepa"),
    "BankAccountNumber-IT": _iban(
        "IT", "[A-Z] ?(?:[0-9A-Z] ?){21}[0-9A-Z]", "codice bancario, conto bancario, numero di conto"
    ),
    "BankAccountNumber-US": IdentifierRow(
        "[0-9]{6,17}",
        "bank account, bank acct, checking account, checking acct, deposit account, deposit acct, savings account,"
        " savings acct, chequing account, chequing acct",
    ),
    "CreditCardExpiration": IdentifierRow(r"(?:0?[1-9]|1[0-2])\s?[/-]\s?(?:20)?[0-9]{2}", _EXPIRY),
    "CreditCardMagneticStripe": IdentifierRow(
        r"%?B[0-9]{13,19}\^[^\^\r\n]{2,26}\^[0-9]{7}[^?\r\n]{0,60}\??|;?[0-9]{13,19}=[0-9]{7,20}\??",
        "card data, iso7813, mag, magstripe, stripe, swipe",
        before="",
        after="",
    ),
    "CreditCardNumber": IdentifierRow(
        _CARD,
        "account number, american express, amex, bank card, card, card num, card number, cc #, ccn, check card, credit,"
        " credit card, credit card#, dankort, debit, debit card, diners club, discover, electron,"
        " elo verification code, japanese card bureau, jcb, mastercard, mc, pan, payment account number,"
        " payment card number, pcn, union pay, visa",
        _is_card,
    ),
    "CreditCardSecurityCode": IdentifierRow(
        "[0-9]{3,4}",
        "card id, card identification code, card identification number, card security code, card validation code,"
        " card validation number, card verification data, card verification value, cvc, cvc2, cvv, cvv2,"
        " elo verification code",
    ),
}
