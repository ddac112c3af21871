"""Mapping templates: the Velocity Template Language, as much of it as API Gateway has, at a cost that is bounded."""
