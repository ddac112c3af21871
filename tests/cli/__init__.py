"""What the commands print, each run in this process."""
