"""The web console: pages rendered on the server, over the engine's own verbs."""

from typing import Final

PATH: Final = "/_redrive/console"
