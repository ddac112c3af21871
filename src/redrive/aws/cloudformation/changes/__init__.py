"""Changes to stacks, carried out: step by step, in parallel where the graph allows, and again after a crash."""
