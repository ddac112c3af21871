import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.endpoints.addresses import is_private, is_within, read_url


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
        *("169.254.169.254", "169.254.0.1", "0.0.0.0", "100.64.0.1", "192.0.2.1", "198.18.0.1"),
        *("255.255.255.255", "224.0.0.1", "240.0.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1"),
        *("168.63.129.16", "100.100.100.200", "fd00:ec2::254", "192.0.0.192"),  # clouds' own services
        *("::127.0.0.1", "::8.8.8.8", "::ffff:0:7f00:1", "::ffff:0:808:808"),  # IPv4 in other wrappings
        *("64:ff9b:1::7f00:1", "64:ff9b:1:ffff::1", "fec0::1", "3fff::1", "3fff:fff::1", "5f00::1"),
    ],
)
def test_private_addresses_are_recognised(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize(
    "address",
    [
        *("8.8.8.8", "1.1.1.1", "172.32.0.1", "172.15.0.1", "100.128.0.1", "169.253.0.1"),
        *("168.63.129.15", "168.63.129.17", "64:ff9b:2::1", "3ffe::1", "2a00::1"),
        *("2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"),
    ],
)
def test_public_addresses_are_not_private(address: str) -> None:
    assert not is_private(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_however_it_is_wrapped(address: ipaddress.IPv4Address) -> None:
    wrapped = ipaddress.IPv6Address(0xFFFF_0000_0000 | int(address))
    translated = ipaddress.IPv6Address((0x64_FF9B << 96) | int(address))
    expected = is_private(str(address))
    assert is_private(str(wrapped)) == expected
    assert is_private(str(translated)) == expected


@pytest.mark.parametrize(
    ("address", "within"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("64:ff9b::a01:203", True),
        ("10.2.0.1", False),
        ("fd00:1::5", True),
        ("fd00:2::5", False),
        ("127.0.0.1", False),
    ],
)
def test_an_address_lies_in_a_network_however_it_is_wrapped(address: str, within: bool) -> None:
    networks = [ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00:1::/32")]
    assert is_within(address, networks) == within


def test_credentials_are_taken_off_a_url() -> None:
    destination = read_url("https://ann%40home:p%3Aw@example.org:8443/hook?a=1")
    assert str(destination.url) == "https://example.org:8443/hook?a=1"
    assert (destination.user, destination.password) == ("ann@home", "p:w")
    assert destination.secure


def test_a_url_without_credentials_has_none() -> None:
    destination = read_url("http://example.org/@home")
    assert (destination.user, destination.password) == (None, "")
    assert str(destination.url) == "http://example.org/@home"
    assert not destination.secure


def test_a_user_without_a_password_has_an_empty_one() -> None:
    destination = read_url("http://ann@example.org/")
    assert (destination.user, destination.password) == ("ann", "")


def test_a_host_in_another_script_is_asked_for_in_ascii() -> None:
    assert read_url("http://bücher.example/").url.raw_host == "xn--bcher-kva.example"
