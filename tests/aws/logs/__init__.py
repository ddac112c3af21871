"""CloudWatch Logs without the wire: filters, queries and policies."""
