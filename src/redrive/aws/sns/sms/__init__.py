"""Text messages: who may be written to, from whom, at what cost, and what is logged of it."""
