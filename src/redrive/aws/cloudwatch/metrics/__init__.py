"""Metrics: writing, reading and metric math."""
