"""Protected health information."""

from typing import Final

from stdnum import luhn
from stdnum.ca import bc_phn
from stdnum.fr import nir
from stdnum.gb import nhs

from redrive.aws.sns.protection.identifiers.rows import IdentifierRow, Rows, valid

#: A French social security number, which the card of the health insurance shows too.
NIR: Final = r"[1-478] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}"
_MBI: Final = (
    "AC-HJKMNP-RT-Y"  # no S, L, O, I, B or Z ("Understanding the Medicare Beneficiary Identifier Format")
)


def _is_dea(text: str) -> bool:
    """The sum of the odd digits and twice that of the even ones ends in the last digit."""
    digits = [int(each) for each in text[2:]]
    return (sum(digits[0:6:2]) + 2 * sum(digits[1:6:2])) % 10 == digits[6]


def _is_npi(text: str) -> bool:
    """Luhn's formula, with 80840 for health care in the United States before it."""
    return bool(luhn.is_valid(f"80840{text}"))


ROWS: Final[Rows] = {
    "DrugEnforcementAgencyNumber-US": IdentifierRow(
        "[A-Z][A-Z9][0-9]{7}", "dea number, dea registration", _is_dea
    ),
    "HealthInsuranceCardNumber-EU": IdentifierRow(
        "80(?: ?[0-9]){18}",
        "assicurazione sanitaria numero, carta assicurazione numero, carte d'assurance maladie,"
        " carte d’assurance maladie, carte européenne d'assurance maladie, ceam, ehic, ehic#,"  # noqa: RUF001 - as the guide writes it
        " finland health insurance card, finlandehicnumber#, finska sjukförsäkringskort, gesundheitskarte, hälsokort,"
        " health card, health card number, health insurance card, health insurance number, insurance card number,"
        " krankenversicherungskarte, krankenversicherungsnummer, medical account number, numero conto medico,"
        " numéro d'assurance maladie, numéro d’assurance maladie, numéro de carte d'assurance,"  # noqa: RUF001 - as the guide writes it
        " numéro de carte d’assurance, numéro de compte medical, número de cuenta médica, número de seguro de salud,"  # noqa: RUF001 - as the guide writes it
        " número de tarjeta de seguro, sairaanhoitokortin, sairausvakuutuskortti, sairausvakuutusnumero,"
        " sjukförsäkring nummer, sjukförsäkringskort, suomen sairausvakuutuskortti, suomi ehic-numero,"
        " tarjeta de salud, terveyskortti, tessera sanitaria assicurazione numero, versicherungsnummer",
    ),
    "HealthInsuranceClaimNumber-US": IdentifierRow(
        "[0-9]{3}-?[0-9]{2}-?[0-9]{4}-?[A-Z][A-Z0-9]?|[A-Z]{1,3}-?[0-9]{6}(?:[0-9]{3})?",
        "health insurance claim number, hic no, hic no., hic number, hic#, hicn, hicn#., hicno#",
    ),
    "HealthInsuranceNumber-FR": IdentifierRow(
        NIR,
        "carte d'assuré social, carte vitale, insurance card",
        valid(nir),
    ),
    "HealthcareProcedureCode-US": IdentifierRow(
        "[A-V][0-9]{4}|[0-9]{4}[0-9FTU]",
        "current procedural terminology, hcpcs, healthcare common procedure coding system",
    ),
    "MedicareBeneficiaryNumber-US": IdentifierRow(
        f"[1-9][{_MBI}][{_MBI}0-9][0-9]-?[{_MBI}][{_MBI}0-9][0-9]-?[{_MBI}]{{2}}[0-9]{{2}}",
        "mbi, medicare beneficiary",
    ),
    "NationalDrugCode-US": IdentifierRow(
        "[0-9]{4}-[0-9]{4}-[0-9]{2}|[0-9]{5}-[0-9]{3}-[0-9]{2}|[0-9]{5}-[0-9]{4}-[0-9]{1,2}",
        "national drug code, ndc",
    ),
    "NationalProviderId-US": IdentifierRow("[12][0-9]{9}", "hipaa, n.p.i, national provider, npi", _is_npi),
    "NhsNumber-GB": IdentifierRow(
        "[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", "national health service, nhs, nhs number", valid(nhs)
    ),
    "PersonalHealthNumber-CA": IdentifierRow(
        "9[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}",
        "canada healthcare number, msp number, personal healthcare number, phn, soins de santé",
        valid(bc_phn),
    ),
}
