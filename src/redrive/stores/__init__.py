"""Stores of deliveries: each implements the engine's store port."""
