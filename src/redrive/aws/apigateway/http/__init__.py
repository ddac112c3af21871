"""HTTP APIs: their operations, and requests to them."""
