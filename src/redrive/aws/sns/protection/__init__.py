"""Data protection: what a topic's policy finds in its messages, and what becomes of them."""
