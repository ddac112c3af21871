"""The contract of a store, one file per concern, each test run on every store."""
