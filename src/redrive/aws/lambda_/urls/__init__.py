"""Function URLs."""
