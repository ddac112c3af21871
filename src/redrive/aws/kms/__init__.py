"""Amazon KMS: keys that encrypt, sign and authenticate, and never leave."""
