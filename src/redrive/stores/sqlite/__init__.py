"""The embedded store: one SQLite file, and concurrent calls that share one fsync."""
