"""Fixtures that Redrive offers to other projects' tests, used as they would use them."""
