"""CloudWatch without the wire: decisions by table, and a whole server in the test's own process."""
