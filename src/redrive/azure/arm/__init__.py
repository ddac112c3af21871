"""The resource manager: topics, domains, event subscriptions and what surrounds them, made, shown and changed."""
