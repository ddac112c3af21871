"""Access: keys, principals, policy evaluation, and encryption at rest."""
