"""What is shipped: the wheel, and the files in `deploy/`."""
