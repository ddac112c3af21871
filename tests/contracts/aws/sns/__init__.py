"""Amazon SNS by its clients."""
