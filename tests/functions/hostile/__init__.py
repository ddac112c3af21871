"""Code of functions that mean harm: `bootstrap` runs one of `attacks` for each event, by the machine's own Python."""
