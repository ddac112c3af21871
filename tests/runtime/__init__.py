"""The system's clock and random numbers."""
