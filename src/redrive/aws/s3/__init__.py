"""Amazon S3: buckets and objects."""
