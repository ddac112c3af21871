"""The environment of programs that are to ask this server, and never the real AWS."""

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

# Variables of AWS's tools that neither choose a server nor give credentials.
_HARMLESS: Final = frozenset({"AWS_CA_BUNDLE", "AWS_DEFAULT_OUTPUT", "AWS_PAGER"})


def client_variables(
    environment: Mapping[str, str], url: str, region: str, access_key_id: str
) -> dict[str, str]:
    """The variables that lead clients to a server; the secret is a dummy.

    Without a configuration file `--profile` finds no credentials that the real AWS would accept, and no endpoint.
    """
    host = urlsplit(url).hostname or ""
    no_proxy_variables = {
        name: ",".join(dict.fromkeys([host, *filter(None, environment.get(name, "").split(","))]))
        for name in ("NO_PROXY", "no_proxy")
    }
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "REDRIVE_URL": url,
        **no_proxy_variables,
    }


def misleading_variables(environment: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """The other variables that would lead clients elsewhere: a profile, a token, `AWS_ENDPOINT_URL_SQS` and the like."""
    others = environment.keys() - variables.keys() - _HARMLESS
    return sorted(name for name in others if re.fullmatch(r"AWS_\w+", name))
