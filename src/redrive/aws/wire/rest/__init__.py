"""The REST protocols in JSON and XML, and S3's variations of them."""
