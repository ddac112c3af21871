"""Telemetry: what is counted, when it is written down, and what is dropped."""
