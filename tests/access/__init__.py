"""Who may do what: keys, principals and policies."""
