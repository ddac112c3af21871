"""Destinations of Event Grid's: storage queues, and brokers that speak AMQP 1.0."""
