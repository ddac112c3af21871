"""Configuration: topics, subscriptions and queues as versioned documents."""
