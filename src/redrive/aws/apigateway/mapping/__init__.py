"""Mapping templates and parameters."""
