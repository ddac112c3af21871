"""KMS, without a server."""
