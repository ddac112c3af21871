"""The files that are shipped: the wheel, and those in `deploy/`."""
