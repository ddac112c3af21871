"""Push: Redrive claims the deliveries of subscriptions, tries them and settles them."""
