"""AWS STS by its clients."""
