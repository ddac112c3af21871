import re
from pathlib import Path
from typing import Any

import pytest

from redrive.endpoints.push.endpoint import URLS
from redrive.endpoints.sms.gateway import MessageCentre, read_gateway
from redrive.settings import (
    PUSH_SERVICES,
    Settings,
    SettingsInvalid,
    address_of,
    aws_endpoint_of,
    read_addresses,
    read_aws_endpoints,
    read_hosts,
    read_networks,
    read_push_endpoints,
    read_settings,
    risks,
)

GROUP = "/subscriptions/1/resourceGroups/rg/providers"
BUS = f"{GROUP}/Microsoft.ServiceBus/namespaces/Bus"
FUNCTION = f"{GROUP}/Microsoft.Web/sites/app/functions/f"


def test_an_address_ends_at_the_next_space_and_begins_at_the_first_equals_sign() -> None:
    pairs = "Store=AccountName=a;AccountKey=aw==\n /x/Y/=https://h/f?code=a=b"
    assert read_addresses(pairs) == {"store": "AccountName=a;AccountKey=aw==", "/x/y": "https://h/f?code=a=b"}


@pytest.mark.parametrize("pairs", ["store", "store=", "=secret", "a=b store secret=x y"])
def test_an_address_has_a_name_and_a_value(pairs: str) -> None:
    with pytest.raises(SettingsInvalid, match="NAME=VALUE"):
        Settings(azure_endpoints=pairs)


@pytest.mark.parametrize(
    ("resource", "address"),
    [
        (f"{BUS}/queues/q", "the queue"),
        (f"{BUS}/QUEUES/Q".upper(), "the queue"),
        (f"{BUS}/queues/other", "the bus"),
        (f"{BUS}/topics/t/subscriptions/s", "the bus"),
        (BUS, "the bus"),
        (f"{BUS}/", "the bus"),
        (BUS.replace("rg", "other"), "any bus"),
        (BUS.replace("rg", "other") + "/queues/q", "any bus"),
        (f"{GROUP}/Microsoft.ServiceBus/namespaces/else", None),
        (FUNCTION, "the function"),
        (f"{GROUP}/Microsoft.Web/sites/app", None),
        (GROUP, None),
        ("bus", None),
        ("", None),
    ],
)
def test_the_nearest_entry_says_what_stands_behind_a_resource(resource: str, address: str | None) -> None:
    entries = {f"{BUS}/queues/q": "the queue", BUS: "the bus", "bus": "any bus", FUNCTION: "the function"}
    assert address_of({name.lower(): value for name, value in entries.items()}, resource) == address


def test_addresses_are_a_table_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "redrive.toml"
    file.write_text('[azure_endpoints]\nstore = "AccountName=a;AccountKey=aw=="\n"/x/y" = "https://h/f"\n')
    settings, _ = read_settings({}, {}, file)
    assert read_addresses(settings.azure_endpoints) == {
        "store": "AccountName=a;AccountKey=aw==",
        "/x/y": "https://h/f",
    }
    settings, _ = read_settings({}, {"REDRIVE_AZURE_ENDPOINTS": "store=z"}, file)
    assert settings.azure_endpoints == "store=z"


@pytest.mark.parametrize("value", ['""', '"a b"'])
def test_no_value_of_the_table_is_empty_or_has_a_space(tmp_path: Path, value: str) -> None:
    file = tmp_path / "redrive.toml"
    file.write_text(f"[azure_endpoints]\nstore = {value}\n")
    with pytest.raises(SettingsInvalid, match="space"):
        read_settings({}, {}, file)


@pytest.mark.parametrize("store", ["azure://account", "http://host/path", "file://host"])
def test_blobs_go_to_a_folder_or_to_s3(store: str) -> None:
    with pytest.raises(SettingsInvalid, match="blob_store"):
        Settings(blob_store=store)
    assert Settings(blob_store="file:///var/blobs").blob_store == "file:///var/blobs"
    assert Settings(blob_store="s3://bucket/prefix").blob_store == "s3://bucket/prefix"


@pytest.mark.parametrize(
    ("store", "folder"),
    [
        ("sqlite:///data/x.db", "data/redrive-blobs"),
        ("sqlite://data/x.db", "data/redrive-blobs"),
        ("sqlite:////var/lib/x.db", "/var/lib/redrive-blobs"),
        ("sqlite:///x.db", "redrive-blobs"),
        ("sqlite://:memory:", "redrive-blobs"),
        ("postgresql://host/sqlite:///x", "redrive-blobs"),
    ],
)
def test_blobs_lie_beside_the_file_of_the_store(store: str, folder: str) -> None:
    assert Settings(store=store).blobs_at == folder
    assert Settings(store=store, blob_store="elsewhere").blobs_at == "elsewhere"


@pytest.mark.parametrize("text", ["x", "-1", "²"])
def test_a_number_is_refused_in_words(text: str) -> None:
    """A superscript ended the start with a traceback."""
    with pytest.raises(SettingsInvalid, match="port must be a number"):
        read_settings({}, {"REDRIVE_PORT": text}, None)


def test_push_services_are_named_by_their_urls(tmp_path: Path) -> None:
    assert set(PUSH_SERVICES) == set(URLS)
    file = tmp_path / "redrive.toml"
    file.write_text('[push_endpoints]\nAPNS = "https://push.test:2197/"\nfcm = "http://127.0.0.1:1/x"\n')
    settings, _ = read_settings({}, {}, file)
    assert read_push_endpoints(settings.push_endpoints) == {
        "apns": "https://push.test:2197",
        "fcm": "http://127.0.0.1:1/x",
    }


@pytest.mark.parametrize(
    ("pairs", "complaint"),
    [
        ("apns", "NAME=VALUE"),
        ("wns=https://h", "a name in push_endpoints"),
        ("fcm=ftp://h", "must be an http"),
        ("fcm=x", "must be an http"),
    ],
)
def test_a_push_service_has_a_name_and_a_url(pairs: str, complaint: str) -> None:
    with pytest.raises(SettingsInvalid, match=complaint):
        Settings(push_endpoints=pairs)


@pytest.mark.parametrize(
    ("given", "effect"),
    [
        ({}, False),
        ({"host": "::1"}, False),
        ({"host": "::1", "auth": "required"}, True),
        ({"host": "127.0.0.1", "auth": "required"}, True),
        ({"public_url": "https://queues.example"}, True),
        ({"forbid_private_endpoints": True}, True),
        ({"host": "0.0.0.0", "auth": "required"}, True),
        ({"host": "10.1.2.3", "auth": "required"}, True),
        ({"host": "redrive.example.org", "auth": "required"}, True),
    ],
)
def test_a_server_that_others_can_reach_pushes_nothing_to_private_addresses(
    given: dict[str, Any], effect: bool
) -> None:
    assert Settings(**given).forbids_private is effect


def test_private_networks_are_opened_by_their_prefix() -> None:
    networks = read_networks("10.1.0.0/16, 192.168.7.20,fd12::/32")
    assert [str(network) for network in networks] == ["10.1.0.0/16", "192.168.7.20/32", "fd12::/32"]
    assert read_networks("") == ()


@pytest.mark.parametrize("networks", ["10.1.0.1/16", "10.0.0.0/33", "localhost", "10.0.0.0-10.0.0.9"])
def test_a_private_network_is_in_cidr_notation(networks: str) -> None:
    with pytest.raises(SettingsInvalid, match="allow_private_endpoints must list networks"):
        Settings(allow_private_endpoints=networks)


def test_hosts_are_names_without_scheme_and_port() -> None:
    assert read_hosts("queues.example, *.corp.example,.lan  *") == (
        "queues.example",
        "*.corp.example",
        ".lan",
        "*",
    )
    assert read_hosts("") == ()


@pytest.mark.parametrize(
    "hosts", ["http://queues.example", "queues.example:4566", "a/b", "*.*.example", "a..b"]
)
def test_other_hosts_are_refused(hosts: str) -> None:
    with pytest.raises(SettingsInvalid, match="allow_hosts must list host names without scheme or port"):
        Settings(allow_hosts=hosts)


@pytest.mark.parametrize("token", ["short", "x" * 15, "with a space, and long", "x" * 257])
def test_a_token_of_scrapers_cannot_be_guessed(token: str) -> None:
    with pytest.raises(SettingsInvalid, match="metrics_token must have at least 16 ASCII characters"):
        Settings(metrics_token=token)


def test_a_token_of_scrapers_is_not_shown() -> None:
    _, origins = read_settings({"metrics_token": "x" * 16}, {}, None)
    assert [origin.masked for origin in origins if origin.name == "metrics_token"] == ["***"]


def test_a_server_that_any_host_may_name_is_warned_of() -> None:
    (risk,) = risks(Settings(allow_hosts="queues.example,*"))
    assert risk.startswith("server.any_host allow_hosts=*: any web page")
    assert list(risks(Settings(allow_hosts="queues.example"))) == []


GATEWAY = "smpp://redrive:secret@smsc.example.org"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("smsc.example.org:2775", "must begin with smpp:// or smpps://"),
        ("http://redrive:secret@smsc.example.org", "must begin with smpp:// or smpps://"),
        ("smpp://smsc.example.org", "USER:PASSWORD@HOST:PORT"),
        ("smpp://redrive:secret@", "USER:PASSWORD@HOST:PORT"),
        (f"{GATEWAY}/path", "USER:PASSWORD@HOST:PORT"),
        (f"{GATEWAY}:seventy", "no usable host and port"),
        (f"{GATEWAY}:70000", "no usable host and port"),
        (f"{GATEWAY}?window=0", "window"),
        (f"{GATEWAY}?window=1001", "window"),
        (f"{GATEWAY}?window=ten", "window"),
        (f"{GATEWAY}?concatenation=glue", "must be udh or sar"),
        (f"{GATEWAY}?windows=10", "unknown options: windows"),
        (f"{GATEWAY}?window", "not NAME=VALUE"),
        (f"{GATEWAY}?sender=Gr%C3%B6%C3%9Fe", "sender that is not ASCII"),
        ("smpp://redrive:s%C3%A9cret@smsc.example.org", "password that is not ASCII"),
        ("smpp://redrive:secret%00@smsc.example.org", "password that is not ASCII"),
    ],
)
def test_text_messages_go_to_a_message_centre(url: str, why: str) -> None:
    with pytest.raises(SettingsInvalid, match=f"sms_gateway .*{why}") as caught:
        Settings(sms_gateway=url)
    assert "secret" not in str(caught.value)


def test_a_gateway_url_is_read_into_its_settings() -> None:
    assert read_gateway(GATEWAY) == MessageCentre("smsc.example.org", 2775, "redrive", "secret")
    url = "smpps://me:p%40%2F@[::1]?window=3&sender=%2B4930&system_type=VMA&concatenation=sar"
    gateway = MessageCentre("::1", 3550, "me", "p@/", True, 3, "+4930", "VMA", False)
    assert read_gateway(url) == gateway
    assert "p@/" not in f"{gateway} {gateway!r}"


@pytest.mark.parametrize("price", ["", "free", "-1", "1e3", "0,05", "0.", "1" * 10])
def test_a_part_of_a_text_message_has_a_price(price: str) -> None:
    with pytest.raises(SettingsInvalid, match="sms_part_price"):
        Settings(sms_part_price=price)
    assert Settings(sms_part_price="0.0075").sms_part_price == "0.0075"


BILL = "arn:aws:lambda:us-east-1:000000000000:function:Bill"
LAKE = "arn:aws:firehose:us-east-1:000000000000:deliverystream/lake"


def test_servers_of_functions_and_streams_are_a_table_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "redrive.toml"
    file.write_text(f'[aws_endpoints]\nlambda = "aws"\n"{BILL}" = "http://k:s=@h:1/a/{{name}}/invocations"\n')
    settings, _ = read_settings({}, {}, file)
    endpoints = read_aws_endpoints(settings.aws_endpoints)
    assert endpoints == {"lambda": "aws", BILL: "http://k:s=@h:1/a/{name}/invocations"}


@pytest.mark.parametrize(
    ("arn", "endpoint"),
    [
        (BILL, "the function's"),
        (f"{BILL}:live", "the function's"),
        (f"{BILL}:7", "the version's"),
        (BILL.lower(), "any"),
        (f"{BILL}er", "any"),
        (LAKE, None),
    ],
)
def test_the_nearest_server_has_a_function(arn: str, endpoint: str | None) -> None:
    entries = {"lambda": "any", BILL: "the function's", f"{BILL}:7": "the version's"}
    assert aws_endpoint_of(entries, arn) == endpoint


def test_a_stream_has_a_server_of_its_own_or_that_of_all() -> None:
    assert aws_endpoint_of({"firehose": "any", "lambda": "no", LAKE: "its own"}, LAKE) == "its own"
    assert aws_endpoint_of({"firehose": "any", "lambda": "no"}, LAKE) == "any"


@pytest.mark.parametrize(
    ("pairs", "complaint"),
    [
        ("lambda", "NAME=VALUE"),
        ("sqs=http://h", "names lambda and firehose, or ARNs; not 'sqs'"),
        ("arn:aws:sqs:us-east-1:1:q=http://h", "not 'arn:aws:sqs:us-east-1:1:q'"),
        ("arn:aws:lambda=http://h", "not 'arn:aws:lambda'"),
        ("lambda=amazon", "lambda must be 'aws' or an http or https URL"),
        ("lambda=ftp://k:secret@h", "lambda must be"),
        ("lambda=http://", "lambda must be"),
        ("lambda=http://[::1", "lambda must be"),
        ("lambda=http://my_host:3001", "whose host has no underscore"),
        ("lambda=http://h/{Name}/invocations", "braces"),
    ],
)
def test_malformed_servers_are_refused_without_showing_secrets(pairs: str, complaint: str) -> None:
    with pytest.raises(SettingsInvalid, match=re.escape(complaint)) as refused:
        Settings(aws_endpoints=pairs)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "runs"),
    [
        ({}, True),
        ({"host": "127.0.0.1", "functions": "off"}, False),
        ({"public_url": "https://queues.example"}, False),
        ({"auth": "required"}, False),
        ({"auth": "required", "functions": "on"}, True),
        ({"auth": "required", "functions_isolation": "bubblewrap"}, True),
        ({"auth": "required", "functions_isolation": "user", "host": "0.0.0.0"}, True),
        ({"auth": "required", "host": "0.0.0.0"}, False),
    ],
)
def test_functions_run_by_themselves_where_that_is_safe(given: dict[str, Any], *, runs: bool) -> None:
    assert Settings(store="sqlite://:memory:", **given).runs_functions is runs
