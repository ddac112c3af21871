"""Private keys of KMS: loaded without being checked anew, since they were checked when they came."""

import time
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key

from redrive.aws.kms import private_keys
from redrive.aws.kms.private_keys import to_der

KEY = rsa.generate_private_key(65_537, 2_048)
NUMBERS = KEY.private_numbers()


def processor_seconds(work: Callable[[], object], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - began


def test_a_signature_takes_less_than_a_check_of_its_key() -> None:
    """A signature with RSA_4096 took 250 ms, nearly all of it for the check, in which the server stood still."""
    content = to_der(KEY)
    sign = lambda: private_keys.sign(content, "RSASSA_PSS_SHA_256", b"m", is_digest=False)  # noqa: E731 - timed
    assert private_keys.is_signature(content, "RSASSA_PSS_SHA_256", b"m", sign(), is_digest=False)
    check = processor_seconds(lambda: load_der_private_key(content, None), 3)
    assert processor_seconds(sign, 6) < check


def changed(**numbers: int) -> rsa.RSAPrivateKey:
    """The key with other numbers, which nobody has checked."""
    names = ("p", "q", "d", "dmp1", "dmq1", "iqmp")
    private = {name: numbers.get(name, getattr(NUMBERS, name)) for name in names}
    public = rsa.RSAPublicNumbers(numbers.get("e", 65_537), numbers.get("n", NUMBERS.public_numbers.n))
    return rsa.RSAPrivateNumbers(**private, public_numbers=public).private_key(
        unsafe_skip_rsa_key_validation=True
    )


def with_composite() -> rsa.RSAPrivateKey:
    """A key of two numbers one of which is no prime: 3 times 5 times …, of the same length."""
    p = NUMBERS.p - 2
    n = p * NUMBERS.q
    d = pow(65_537, -1, (p - 1) * (NUMBERS.q - 1) // 2)
    return changed(p=p, n=n, d=d, dmp1=d % (p - 1), dmq1=d % (NUMBERS.q - 1), iqmp=pow(NUMBERS.q, -1, p))


def test_a_key_whose_numbers_belong_together_is_consistent() -> None:
    assert private_keys.is_consistent(KEY, 2_048)
    assert not private_keys.is_consistent(KEY, 3_072)


@pytest.mark.parametrize("name", ["d", "dmp1", "dmq1", "iqmp", "e"])
def test_a_key_with_a_number_of_another_is_inconsistent(name: str) -> None:
    before = getattr(NUMBERS.public_numbers if name == "e" else NUMBERS, name)
    assert not private_keys.is_consistent(changed(**{name: before + 2}), 2_048)


def test_a_key_of_a_composite_is_inconsistent() -> None:
    assert not private_keys.is_consistent(with_composite(), 2_048)
