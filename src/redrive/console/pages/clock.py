"""The simulated clock: time advances by the buttons of its bar."""

from typing import Final

from redrive.console.clock_control import SPAN_MAX_MS, NothingDue
from redrive.console.visit import Missing, Redirect, Unusable, Visit
from redrive.model.durations import show_duration

_NEXT: Final = "next"


async def move(visit: Visit) -> Redirect:
    """Let time pass, and go back to the page that the button was on."""
    clock_control = visit.installation.clock_control
    if clock_control is None:
        raise Missing("This server's clock is the system's, which cannot be moved.")
    before = visit.engine.clock.now()
    if visit.parameter("by") == _NEXT:
        try:
            attempts = await clock_control.to_next_attempt()
        except NothingDue:
            return Redirect(_back(visit), sentence="No attempt is due, so the clock was not moved")
    else:
        milliseconds = visit.number("by")
        if milliseconds > SPAN_MAX_MS:
            raise Unusable("Time advances by at most 31 days.")
        attempts = await clock_control.forward(milliseconds)
    passed = show_duration(visit.engine.clock.now() - before)
    result = (
        "no delivery was attempted"
        if not attempts
        else f"{attempts:,} {'attempt was' if attempts == 1 else 'attempts were'} made"
    )
    return Redirect(_back(visit), sentence=f"Time advanced by {passed}: {result}")


def _back(visit: Visit) -> str:
    """The page of the console that the form names."""
    back = visit.parameter("back")
    is_ours = back.startswith(f"{visit.base}/") and "\\" not in back and back.isprintable()
    return back if is_ours else f"{visit.base}/"
