"""Parts that all Amazon services share: calls, attributes, batches and documents."""
