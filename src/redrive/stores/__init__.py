"""Where deliveries are kept: each store is one implementation of the engine's store port."""
