"""What every kind of endpoint promises, each test run on every kind, and what HTTP's failures are taken for."""
