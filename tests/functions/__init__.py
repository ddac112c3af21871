"""Functions: environments, the Runtime API and the pool, with real processes."""
