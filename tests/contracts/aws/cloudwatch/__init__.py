"""Amazon CloudWatch by its clients."""
