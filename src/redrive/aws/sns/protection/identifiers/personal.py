"""Personally identifiable information, but for licences, passports and telephones."""

from typing import Final

from stdnum.br import cnpj, cpf
from stdnum.ca import sin
from stdnum.de import idnr
from stdnum.es import cif, dni, nie, nif
from stdnum.fr import nif as fr_nif
from stdnum.fr import nir
from stdnum.gb import utr
from stdnum.it import codicefiscale
from stdnum.us import itin, ssn

from redrive.aws.sns.protection.identifiers.health import NIR
from redrive.aws.sns.protection.identifiers.rows import IdentifierRow, Rows, valid

_YEAR: Final = "(?:1[89]|20)[0-9]{2}"
_SHORT_YEAR: Final = f"(?:{_YEAR}|[0-9]{{2}})"
_MONTH: Final = "(?:0?[1-9]|1[0-2])"
_DAY: Final = "(?:0?[1-9]|[12][0-9]|3[01])"
_NAMED: Final = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)[.]?"
)
_ORDINAL: Final = f"{_DAY}(?:st|nd|rd|th)?"
_BETWEEN: Final = "(?:[ /-]|, ?)"
_DATE: Final = "|".join(
    (
        f"{_YEAR}(?:-{_MONTH}-|/{_MONTH}/| {_MONTH} ){_DAY}",
        f"{_DAY}(?:-{_MONTH}-|/{_MONTH}/| {_MONTH} ){_SHORT_YEAR}",
        f"{_MONTH}(?:-{_DAY}-|/{_DAY}/| {_DAY} ){_SHORT_YEAR}",
        f"{_ORDINAL}{_BETWEEN}(?:of )?{_NAMED}{_BETWEEN}{_SHORT_YEAR}",
        f"{_NAMED}{_BETWEEN}{_ORDINAL}{_BETWEEN}{_SHORT_YEAR}",
        f"{_YEAR}{_BETWEEN}{_NAMED}{_BETWEEN}{_ORDINAL}",
        f"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])",
    )
)

_BR_PERSON: Final = (
    "cadastro de pessoas fisicas, cadastro de pessoas físicas, cadastro de pessoa física, cadastro de pessoa fisica,"
    " cpf"
)
_ES_TAX: Final = (
    "cif, cif número, cifnúmero#, nie, nif, número de contribuyente, número de identidad de extranjero,"
    " número de identificación fiscal, número de impuesto corporativo, personal tax number, tax id,"
    " tax identification number, tax number, tin, tin#"
)
_FR_SOCIAL: Final = (
    "assurance sociale, carte nationale d'identité, carte nationale d’identité, cni, code sécurité sociale,"  # noqa: RUF001 - as the guide writes it
    " french social security number, fssn#, insee, insurance number, national id number, nationalid#, numéro d'assurance,"
    " sécurité sociale, sécurité sociale non., sécurité sociale numéro, social, social security, social security number,"
    " socialsecuritynumber, ss#, ssn, ssn#"
)
_NO_NINO: Final = ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
_NIE: Final = "[XYZ][ -]?[0-9]{7}[ -]?[A-Z]"
_DNI: Final = r"[0-9]{2}[.]?[0-9]{3}[.]?[0-9]{3}[ -]?[A-Z]"


def _is_affiliation(text: str) -> bool:
    """Spain's number of affiliation to the social security: province and serial number, and them modulo 97."""
    digits = "".join(each for each in text if each.isdigit())
    province, serial, control = int(digits[:2]), int(digits[2:10]), int(digits[10:])
    return (province * (10_000_000 if serial < 10_000_000 else 100_000_000) + serial) % 97 == control  # noqa: PLR2004 - above


ROWS: Final[Rows] = {
    "CepCode-BR": IdentifierRow(
        "[0-9]{5}-?[0-9]{3}", "cep, código de endereçamento postal, codigo de endereçamento postal"
    ),
    "Cnpj-BR": IdentifierRow(
        r"[0-9]{2}[.]?[0-9]{3}[.]?[0-9]{3}/?[0-9]{4}-?[0-9]{2}",
        "cadastro nacional da pessoa jurídica, cadastro nacional da pessoa juridica, cnpj",
        valid(cnpj),
    ),
    "CpfCode-BR": IdentifierRow(r"[0-9]{3}[.]?[0-9]{3}[.]?[0-9]{3}-?[0-9]{2}", _BR_PERSON, valid(cpf)),
    "DateOfBirth": IdentifierRow(  # whether a time of the day follows or not
        _DATE,
        "dob, date of birth, birthdate, birth date, birthday, b-day, bday",
        after="(?:[^A-Za-z0-9]|T[0-9]{2}:|$)",
    ),
    "ElectoralRollNumber-GB": IdentifierRow(
        "[A-Z]{1,3}[0-9]{1,4}",
        "electoral#, electoral #, electoralnumber, electoral number, electoralroll#, electoral roll#, electoral roll #,"
        " electoral roll no., electoral roll number, electoralrollno",
    ),
    "EmailAddress": IdentifierRow(
        "[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:[.][A-Za-z0-9-]{1,63}){1,8}",
        before="(?:^|[^A-Za-z0-9._%+-])",
        after="(?:[^A-Za-z0-9-]|$)",
    ),
    "IndividualTaxIdentificationNumber-US": IdentifierRow(
        "9[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{4}",
        "individual taxpayer identification number, itin, i.t.i.n.",
        valid(itin),
    ),
    "InseeCode-FR": IdentifierRow(NIR, _FR_SOCIAL, valid(nir)),
    "LatLong": IdentifierRow(
        "[-+]?(?:90[.]0{1,15}|[0-8]?[0-9][.][0-9]{1,15})(?: ?[,;] ?| )"
        "[-+]?(?:180[.]0{1,15}|(?:1[0-7][0-9]|[0-9]{1,2})[.][0-9]{1,15})",
        "coordinate, coordinates, lat long, latitude longitude, location, position",
    ),
    "NationalIdentificationNumber-DE": IdentifierRow(
        "[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{7}[0-9][0-9]?|[0-9]{10}",
        "ausweisnummer, id number, identification number, identity number, insurance number, personal id,"
        " personalausweis",
    ),
    "NationalIdentificationNumber-ES": IdentifierRow(
        _DNI,
        "dni, dni#, dninúmero#, documento nacional de identidad, identidad único, identidadúnico#, insurance number,"
        " national identification number, national identity, nationalid#, nationalidno#, número nacional identidad,"
        " personal identification number, personal identity no, unique identity number, uniqueid#",
        valid(dni),
    ),
    "NationalIdentificationNumber-IT": IdentifierRow(
        "[A-Z]{6}[0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]",
        "codice fiscal, codice fiscale, dati anagrafici, ehic, health card, health insurance card, p. iva,"
        " partita i.v.a., personal data, tax code, tessera sanitaria",
        valid(codicefiscale),
    ),
    "NationalInsuranceNumber-GB": IdentifierRow(
        "[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]",
        "insurance no., insurance number, insurance#, national insurance number, nationalinsurance#,"
        " nationalinsurancenumber, nin, nino",
        lambda text: not text.upper().startswith(_NO_NINO),
    ),
    "NieNumber-ES": IdentifierRow(_NIE, _ES_TAX, valid(nie)),
    "NifNumber-ES": IdentifierRow(f"{_DNI}|[KLM][0-9]{{7}}[A-Z]|{_NIE}", _ES_TAX, valid(nif)),
    "PermanentResidenceNumber-CA": IdentifierRow(
        "[A-Z]{2}[ -]?[0-9]{7}(?:[0-9]{3})?",
        "carte résident permanent, numéro carte résident permanent, numéro résident permanent, permanent resident card,"
        " permanent resident card number, permanent resident no, permanent resident no., permanent resident number,"
        " pr no, pr no., pr non, pr number, résident permanent no., résident permanent non",
    ),
    "PostalCode-CA": IdentifierRow(
        "[ABCEGHJ-NPRSTVXY][0-9][ABCEGHJ-NPRSTV-Z][ -]?[0-9][ABCEGHJ-NPRSTV-Z][0-9]"
    ),
    "RgNumber-BR": IdentifierRow(r"[0-9]{1,2}[.]?[0-9]{3}[.]?[0-9]{3}-?[0-9X]", "registro geral, rg"),
    "SocialInsuranceNumber-CA": IdentifierRow(
        "[1-9][0-9]{2}[ -]?[0-9]{3}[ -]?[0-9]{3}",
        "canadian id, numéro d'assurance sociale, social insurance number, sin",
        valid(sin),
    ),
    "Ssn-ES": IdentifierRow(
        "[0-9]{2}[ /-]?[0-9]{8}[ /-]?[0-9]{2}",
        "número de la seguridad social, social security no., social security no. número de la seguridad social,"
        " social security number, socialsecurityno#, ssn, ssn#",
        _is_affiliation,
    ),
    "Ssn-US": IdentifierRow(
        "[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4}",
        "social security, social security number, ss#, ssn",
        valid(ssn),
    ),
    "TaxId-DE": IdentifierRow(
        "[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        "identifikationsnummer, steuer id, steueridentifikationsnummer, steuernummer, tax id, tax identification number,"
        " tax number",
        valid(idnr),
    ),
    "TaxId-ES": IdentifierRow("[A-HJNP-SU-W][ -]?[0-9]{7}[ -]?[0-9A-J]", _ES_TAX, valid(cif)),
    "TaxId-FR": IdentifierRow(
        "[0-3][0-9] ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        "numéro d'identification fiscale, tax id, tax identification number, tax number, tin, tin#",
        valid(fr_nif),
    ),
    "TaxId-GB": IdentifierRow(
        "[0-9]{5} ?[0-9]{5}",
        "paye, tax id, tax id no., tax id number, tax identification, tax identification#, tax no., tax number,"
        " tax reference, tax#, taxid#, temporary reference number, tin, trn, unique tax reference,"
        " unique taxpayer reference, utr",
        valid(utr),
    ),
    "VehicleIdentificationNumber": IdentifierRow(  # ISO 3779: no I, O or Q; a check digit is North America's alone
        "[A-HJ-NPR-Z0-9]{13}[0-9]{4}",
        "fahrgestellnummer, niv, numarul de identificare, numarul seriei de sasiu, serie sasiu, numer vin,"
        " número de identificação do veículo, número de identificación de automóviles,"
        " numéro d'identification du véhicule, vehicle identification number, vin, vin numeris",
        lambda text: not text.isdigit(),
    ),
    "ZipCode-US": IdentifierRow("[0-9]{5}(?:-[0-9]{4})?", "zip code, zip+4"),
}
