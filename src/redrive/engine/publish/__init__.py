"""Publish: messages become deliveries."""
