"""Output of the commands, each run in this process."""
