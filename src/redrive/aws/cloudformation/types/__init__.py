"""The types of resources that stacks are made of, each by the operations of its own service."""
