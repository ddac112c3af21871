"""The command line's parser: a mistake is told in one line, with the option that was probably meant."""

import argparse
import difflib
import sys
from typing import NoReturn

from typing_extensions import override

from redrive.cli.terminal import note

_USAGE_ERROR = 2  # as argparse and most shells' commands have it


class CommandLine(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage of all options before it."""

    @override
    def error(self, message: str) -> NoReturn:
        note(f"{message} ({self.prog} --help tells more)")
        sys.exit(_USAGE_ERROR)

    def refuse_unknown(self, words: list[str]) -> None:
        """End with status 2 if words were left over; an option that nearly exists is suggested.

        Args:
            words: Those that neither this parser nor its commands know.
        """
        if not words:
            return
        option = words[0].partition("=")[0]
        near = difflib.get_close_matches(option, self._known_options(), n=1)
        suggestion = f"; is {near[0]} meant?" if near else ""
        self.error(f"unknown: {' '.join(words)}{suggestion}")

    def _known_options(self) -> list[str]:
        options = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no other way to walk its commands
                for command in action.choices.values():
                    options += command._known_options()  # noqa: SLF001 - the same class
        return options
