"""Amazon SQS: queues that callers send to and receive from."""
