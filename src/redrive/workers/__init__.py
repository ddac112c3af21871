"""Several processes that serve one address on one machine: a supervisor, and the workers that it starts."""
