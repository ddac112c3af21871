"""SNS as a facade: what it accepts, what it refuses, and how it words both."""
