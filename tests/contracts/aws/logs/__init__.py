"""CloudWatch Logs by its clients."""
