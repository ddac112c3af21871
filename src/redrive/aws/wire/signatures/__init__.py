"""Signature Version 4, with S3's forms, and presigned URLs of Version 2."""
