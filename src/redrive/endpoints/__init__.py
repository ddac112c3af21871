"""Endpoints that deliveries are pushed to: one module a kind, each a `redrive.engine.ports.Endpoint`."""
