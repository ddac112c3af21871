"""Documents of stacks, their history and states, and how callers name them."""
