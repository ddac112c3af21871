"""A threaded HTTP server of a test's own, answering as long as a block."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer


@contextlib.contextmanager
def answering(server: ThreadingHTTPServer) -> Iterator[None]:
    """Answer in a thread beside, and let go of the port at the end."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
