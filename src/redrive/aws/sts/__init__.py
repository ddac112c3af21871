"""AWS STS: who the caller is."""
