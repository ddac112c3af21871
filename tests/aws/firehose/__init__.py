"""Firehose without the wire: prefixes, settings, transformations."""
