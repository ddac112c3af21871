"""Data identifiers: those that Amazon manages, and those that policies define."""
