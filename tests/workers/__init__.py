"""Workers of one address, and their supervisor."""
