"""The rental-car application whole, from the template of its example: whatever fails ends where it should."""
