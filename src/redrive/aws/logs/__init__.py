"""Amazon CloudWatch Logs: groups, streams and events."""
