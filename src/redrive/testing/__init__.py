"""Public aids for tests: a pytest plugin, a simulated clock and loop, and recording endpoints."""
