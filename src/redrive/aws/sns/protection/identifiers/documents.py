"""Driving licences, passports and telephones: numbers with a country each, and no check digit that all of them have."""

from typing import Final

from redrive.aws.sns.protection.identifiers.rows import IdentifierRow, Rows

# ---- driving licences --------------------------------------------------------------------------------------------

_ENGLISH: Final = (
    "dl#, dl:, dl :, dlno#, driver licence, driver licences, driver license, driver licenses, driver permit,"
    " drivers lic., drivers licence, driver's licence, drivers licences, driver's licences, drivers license,"
    " driver's license, drivers licenses, driver's licenses, drivers permit, driver's permit, drivers permit number,"
    " driving licence, driving license, driving permit"
)
_GERMAN: Final = (
    "fuehrerschein, fuehrerschein- nr, fuehrerscheinnummer, fuhrerschein, führerschein, fuhrerschein- nr,"
    " führerschein- nr, fuhrerscheinnummer, führerscheinnummer"
)
_FRENCH: Final = "permis de conduire"
_FINNISH: Final = "ajokortin numero, ajokortti, förare lic., körkort, körkort nummer, kuljettaja lic."
_OF_PROVINCES: Final = (
    "[0-9]{5,9}|[0-9]{6}-[0-9]{3}|[A-Z]{2}-?[A-Z]{2}-?[A-Z]{2}-?[A-Z][0-9]{3}[A-Z]{2}|[A-Z][0-9]{9}"
    "|[A-Z]{5}-?[0-3][0-9][01][0-9]{6}|[A-Z][0-9]{4}-?[0-9]{5}-?[0-9]{5}|[A-Z][0-9]{12}"
)
# Every state's own: letters and digits, in groups or not; Washington's fills up names with asterisks.
_OF_STATES: Final = (
    "[A-Z]{0,3}[0-9]{5,14}[A-Z]{0,2}|[A-Z][0-9]{3}(?:[ -][0-9]{3}){2,3}(?:[ -][0-9])?"
    "|[A-Z][0-9]{4}[ -][0-9]{5}[ -][0-9]{5}|[0-9]{3} [0-9]{3} [0-9]{3}|[0-9]{2}[ -][0-9]{3}[ -][0-9]{3,4}"
    "|[A-Z]{3}-?[0-9]{2}-?[0-9]{4}|[0-9]{2}[A-Z]{3}[0-9]{5}|[A-Z*]{7}[0-9]{3}[0-9A-Z]{2}|WDL[0-9A-Z]{9}"
)

_LICENCES: Final[Rows] = {
    "AT": IdentifierRow("[0-9]{8}", "führerschein, fuhrerschein, führerschein republik österreich"),
    "AU": IdentifierRow(
        "[A-Z]{0,2}[0-9]{4,9}|[0-9A-Z]{2}[0-9]{2}[0-9A-Z]{5}",
        _ENGLISH,
    ),
    "BE": IdentifierRow(
        "[0-9]{10}", f"{_GERMAN}, numéro permis conduire, {_FRENCH}, rijbewijs, rijbewijsnummer"
    ),
    "BG": IdentifierRow(
        "[0-9]{9}",
        "превозно средство, свидетелство за управление на моторно, свидетелство за управление на мпс, сумпс,"
        " шофьорска книжка",
    ),
    "CA": IdentifierRow(_OF_PROVINCES, f"{_ENGLISH}, {_FRENCH}"),
    "CY": IdentifierRow("[0-9]{12}", "άδεια οδήγησης"),
    "CZ": IdentifierRow(
        "[A-Z]{2} ?[0-9]{6}",
        "číslo licence, císlo licence řidiče, číslo řidičského průkazu, ovladače lic., povolení k jízdě,"
        " povolení řidiče, řidiči povolení, řidičský prúkaz, řidičský průkaz",
    ),
    "DE": IdentifierRow("[0-9A-Z][0-9]{2}[0-9A-Z]{6}[0-9][0-9A-Z]", _GERMAN),
    "DK": IdentifierRow("[0-9]{8}", "kørekort, kørekortnummer"),
    "EE": IdentifierRow(
        "[A-Z]{2}[0-9]{6}", "juhi litsentsi number, juhiloa number, juhiluba, juhiluba number"
    ),
    "ES": IdentifierRow(
        "[0-9]{8}-?[0-9A-Z]",
        "carnet conducer, el carnet de conducer, licencia conducer, licencia de manejo, número carnet conducer,"
        " número de carnet de conducer, número de permiso conducer, número de permiso de conducer,"
        " número licencia conducer, número permiso conducer, permiso conducción, permiso conducer,"
        " permiso de conducción",
    ),
    "FI": IdentifierRow("[0-9]{6}[-A+][0-9]{3}[0-9A-Z]", f"{_FINNISH}, {_FRENCH}"),
    "FR": IdentifierRow("[0-9]{12}", _FRENCH),
    "GB": IdentifierRow("[A-Z9]{5}[0-9][0156][0-9]{4}[A-Z9]{2}[0-9A-Z]{3}(?: ?[0-9]{2})?", _ENGLISH),
    "GR": IdentifierRow("[0-9]{9}", "δεια οδήγησης, άδεια οδήγησης, adeia odigisis"),
    "HR": IdentifierRow("[0-9]{8}", "vozačka dozvola"),
    "HU": IdentifierRow(
        "[A-Z]{2}[0-9]{6}",
        "illesztőprogramok lic, jogosítvány, jogsi, licencszám, vezető engedély, vezetői engedély",
    ),
    "IE": IdentifierRow("[0-9]{6}[A-Z]{4}|[0-9]{9}", "ceadúnas tiomána"),
    "IT": IdentifierRow(
        "[A-Z][AV][0-9]{7}[A-Z]",
        "patente di guida, patente di guida numero, patente guida, patente guida numero",
    ),
    "LT": IdentifierRow("[0-9]{8}", "vairuotojo pažymėjimas"),
    "LU": IdentifierRow("[0-9]{6}", "fahrerlaubnis, führerschäin"),
    "LV": IdentifierRow(
        "[A-Z]{2,3}[0-9]{6}",
        "autovadītāja apliecība, licences numurs, vadītāja apliecība, vadītāja apliecības numurs, vadītāja atļauja,"
        " vadītāja licences numurs, vadītāji lic.",
    ),
    "MT": IdentifierRow("[0-9A-Z]{2} ?[0-9]{3} ?[0-9]{3}", "liċenzja tas-sewqan"),
    "NL": IdentifierRow("[0-9]{10}", f"{_FRENCH}, rijbewijs, rijbewijsnummer"),
    "PL": IdentifierRow(
        "[0-9]{5}/[0-9]{2}/[0-9]{4}", "numer licencyjny, prawo jazdy, zezwolenie na prowadzenie"
    ),
    "PT": IdentifierRow(
        "[A-Z]{1,2}-?[0-9]{5,8} ?[0-9]",
        "carta de condução, carteira de habilitação, carteira de motorist, carteira habilitação, carteira motorist,"
        " licença condução, licença de condução, número de licença, número licença, permissão condução,"
        " permissão de condução",
    ),
    "RO": IdentifierRow("[A-Z0-9][0-9]{8}", "numărul permisului de conducere, permis de conducere"),
    "SE": IdentifierRow(
        "[0-9]{6}-?[0-9]{4}",
        f"{_FINNISH}, dlno# ajokortti, drivere lic., körkortsnummer, kuljettajat lic.",
    ),
    "SI": IdentifierRow("[0-9]{9}", "vozniško dovoljenje"),
    "SK": IdentifierRow(
        "[A-Z0-9][0-9]{7}",
        "číslo licencie, číslo vodičského preukazu, ovládače lic., povolenia vodičov, povolenie jazdu,"
        " povolenie na jazdu, povolenie vodiča, vodičský preukaz",
    ),
    "US": IdentifierRow(_OF_STATES, _ENGLISH),
}

# ---- passports ---------------------------------------------------------------------------------------------------

_PASSPORTS: Final[Rows] = {
    "CA": IdentifierRow(
        "[A-Z]{2} ?[0-9]{6}|[A-Z][0-9]{6}[A-Z]{2}",
        "passeport, passeport#, passport, passport#, passportno, passportno#",
    ),
    "DE": IdentifierRow(
        "[CFGHJK][CFGHJKLMNPRTVWXYZ0-9]{7}[0-9CFGHJKLMNPRTVWXYZ][0-9]?",
        "ausstellungsdatum, ausstellungsort, geburtsdatum, passport, passports, reisepass, reisepass–nr, reisepass-nr,"  # noqa: RUF001 - as the guide writes it
        " reisepassnummer",
    ),
    "ES": IdentifierRow(
        "[A-Z]{2,3} ?[0-9]{6}",
        "españa pasaporte, libreta pasaporte, número pasaporte, pasaporte, passport, passport book, passport no,"
        " passport number, spain passport",
    ),
    "FR": IdentifierRow(
        "[0-9]{2}[A-Z]{2}[0-9]{5}",
        "numéro de passeport, passeport, passeport#, passeport #, passeportn °, passeport n °, passeportnon,"
        " passeport non",
    ),
    "GB": IdentifierRow(
        "[0-9]{9}",
        "passeport #, passeport n °, passeportnon, passeport non, passeportn °, passport #, passport no,"
        " passport number, passport#, passportid",
    ),
    "IT": IdentifierRow(
        "[A-Z]{2}[0-9]{7}",
        "italian passport number, numéro passeport, numéro passeport italien, passaporto, passaporto italiana,"
        " passaporto numero, passport number, repubblica italiana passaporto",
    ),
    "US": IdentifierRow("[A-Z0-9][0-9]{8}", "passport, travel document"),
}

# ---- telephones --------------------------------------------------------------------------------------------------

_PHONE: Final = (
    "cell, contact, fax, fax number, mobile, phone, phone number, tel, telephone, telephone number"
)
_GAP: Final = "[ ./-]?"
# The country's code, its number without the prefix for calls within it, and that prefix.
_PLANS: Final = {
    "BR": ("55", rf"\(?[1-9][0-9]\)?{_GAP}(?:9{_GAP})?[2-9][0-9]{{3}}{_GAP}[0-9]{{4}}", "0?"),
    "DE": ("49", rf"\(?[1-9][0-9]{{1,4}}\)?{_GAP}[0-9]{{2,4}}(?:{_GAP}[0-9]{{2,4}}){{1,2}}", "0"),
    "ES": (
        "34",
        rf"[6-9][0-9]{{2}}{_GAP}(?:[0-9]{{3}}{_GAP}[0-9]{{3}}|(?:[0-9]{{2}}{_GAP}){{2}}[0-9]{{2}})",
        "",
    ),
    "FR": ("33", rf"[1-9](?:{_GAP}[0-9]{{2}}){{4}}", "0"),
    "GB": ("44", rf"\(?[1-9][0-9]{{1,4}}\)?{_GAP}[0-9]{{3,4}}{_GAP}[0-9]{{3,4}}", "0"),
    "IT": ("39", rf"(?:3[0-9]{{2}}|0[1-9][0-9]{{0,2}}){_GAP}[0-9]{{3,4}}{_GAP}[0-9]{{3,4}}", ""),
    "US": ("1", rf"\(?[2-9][0-9]{{2}}\)?{_GAP}[2-9][0-9]{{2}}{_GAP}[0-9]{{4}}", f"(?:1{_GAP})?"),
}
_KEYWORDS: Final = {
    "BR": f"{_PHONE}, cel, celular, fone, móvel, número residencial, numero residencial, telefone"
}


_BEFORE: Final = "(?:^|[^A-Za-z0-9_+.])"
_AFTER: Final = "(?:[^A-Za-z0-9_]|$)"


def _international(country: str) -> IdentifierRow:
    """A number with the country's code, after which the national prefix is left out or in parentheses."""
    code, number, _ = _PLANS[country]
    return IdentifierRow(rf"(?:[+]|00){code}{_GAP}(?:\(0\){_GAP})?{number}", before=_BEFORE, after=_AFTER)


def _national(country: str) -> IdentifierRow:
    """A number without the country's code: a keyword must be near."""
    _, number, prefix = _PLANS[country]
    keywords = _KEYWORDS.get(country, _PHONE)
    return IdentifierRow(rf"\(?{prefix}{number}", keywords, before=_BEFORE, after=_AFTER)


#: The rows of each telephone's identifier; `PhoneNumber` alone is any country's.
PHONES: Final = {
    f"PhoneNumber-{country}": (_international(country), _national(country)) for country in _PLANS
}

ROWS: Final[Rows] = {f"DriversLicense-{country}": row for country, row in _LICENCES.items()} | {
    f"PassportNumber-{country}": row for country, row in _PASSPORTS.items()
}
