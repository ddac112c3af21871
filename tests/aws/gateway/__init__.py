"""The way in for Amazon's services."""
