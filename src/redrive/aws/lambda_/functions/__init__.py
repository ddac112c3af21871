"""Functions: configuration, code, versions, aliases, permissions and concurrency."""
