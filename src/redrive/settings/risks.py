"""Settings that are allowed and that somebody may regret: said once, when the server starts."""

from collections.abc import Iterator

from redrive.settings.networks import ANY_HOST, is_loopback, read_hosts
from redrive.settings.table import Settings


def risks(settings: Settings) -> Iterator[str]:
    """The risks of these settings, each as a line for the log."""
    if settings.skip_queue_waits:
        yield "skip_queue_waits is on: queues are made again and purged again at once, where Amazon wants 60 seconds"
    if settings.insecure_test_keys:
        yield (
            f"server.insecure_test_keys host={settings.host}: whoever reaches this server knows the access key test with"
            " the secret test, and may do everything with account 000000000000; never use this where others are"
        )
    if settings.auth == "off" and ANY_HOST in read_hosts(settings.allow_hosts):
        yield (
            "server.any_host allow_hosts=*: any web page that is open on this machine can read and command this server,"
            " by a name of its own that leads here; name your hosts instead"
        )
    if settings.functions == "on" and settings.functions_isolation == "none":
        yield (
            "server.functions_unconfined: whoever may create a function runs programs as this server's user, who can read"
            " its store and its keys; functions_isolation bubblewrap keeps them apart"
        )
    encrypted = settings.tls != "off" or bool(settings.tls_cert)
    if not encrypted and not is_loopback(settings.host):
        yield (
            f"server.plain_http host={settings.host}: whoever is on the way can read requests, messages and answers;"
            " --tls auto or --tls-cert with --tls-key encrypts them"
        )
