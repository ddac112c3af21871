"""`redrive config`: print the settings, and where each comes from."""

import argparse

from redrive.cli.listing import add_json
from redrive.cli.options import add_settings, settings_of
from redrive.cli.terminal import print_json


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = "Print the settings that serve would use, and where each comes from."
    add_settings(command)
    add_json(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print a line a setting."""
    _, origins = settings_of(parsed)
    if parsed.json:
        settings = [
            {"name": origin.name, "value": origin.shown, "source": origin.source} for origin in origins
        ]
        print_json({"settings": settings})
        return 0
    for origin in origins:
        print(f"{origin.name:12} {origin.shown:32} {origin.source}")
    return 0
