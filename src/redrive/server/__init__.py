"""The front door: HTTP connections, routing to the protocols, TLS, health and control routes."""
