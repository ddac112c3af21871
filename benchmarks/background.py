"""Work in a thread beside a block."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Let work be done for the time of a block, which sets the event at its end and then waits for the work."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
