"""The system's clock and random numbers; no other package reads either."""
