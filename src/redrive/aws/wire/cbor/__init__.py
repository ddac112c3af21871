"""Smithy RPC v2 CBOR."""
