"""API Gateway without a server."""
