"""Time and chance, the real ones."""
