"""Topics and subscriptions as documents: their names, attributes and policies, and who may use them."""
