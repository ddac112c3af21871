"""Telemetry: what happened, counted by the minute and written to logs, without holding up what happens."""
