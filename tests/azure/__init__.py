"""Event Grid as a facade: what it accepts, what its subscribers get, and what becomes of what they do not take."""
