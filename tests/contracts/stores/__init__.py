"""What a store promises, one file per concern, each test run on every store."""
