"""Event Grid: events published, filtered, rendered in a subscriber's schema, and pushed or pulled."""
