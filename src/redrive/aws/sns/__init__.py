"""Amazon SNS: topics, subscriptions and what their attributes mean, translated to the engine's words."""
