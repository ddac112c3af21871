"""Who may do what: access keys, principals, policy evaluation, and encryption at rest."""
