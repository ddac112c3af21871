"""AWS IAM by its clients."""
