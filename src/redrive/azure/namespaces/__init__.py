"""Event Grid's namespaces: events published to their topics, and pulled from queues or pushed."""
