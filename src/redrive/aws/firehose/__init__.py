"""Amazon Data Firehose: records are buffered in the store, and delivered to S3 as objects."""
