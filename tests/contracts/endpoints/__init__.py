"""The contract of every kind of endpoint, each test run on every kind, and HTTP failures with their meaning."""
