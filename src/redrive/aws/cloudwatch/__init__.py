"""Amazon CloudWatch: metrics, written and read."""
