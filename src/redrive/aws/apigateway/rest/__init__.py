"""REST APIs: their operations, and requests to them."""
