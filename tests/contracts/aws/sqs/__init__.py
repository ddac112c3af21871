"""Amazon SQS by its clients."""
