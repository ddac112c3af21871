"""Measurements of a running server, each file one question; `python -m benchmarks` asks them."""
