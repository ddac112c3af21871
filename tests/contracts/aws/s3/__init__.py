"""S3 as its clients speak it."""
