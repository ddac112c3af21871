"""One request of an Amazon service: who sends it, whether that may be, and calls from within."""
