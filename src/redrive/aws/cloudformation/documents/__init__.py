"""Documents of stacks and of their history, how callers name stacks, and what resources wait for."""
