"""Signature Version 4, with botocore as the signer."""
