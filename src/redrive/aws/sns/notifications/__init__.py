"""Messages as subscribers get them: written, signed and logged."""
