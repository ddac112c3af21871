"""The wire of all Amazon services: formats, errors, signatures and resource names."""
