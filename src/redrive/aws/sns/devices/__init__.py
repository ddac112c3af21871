"""Mobile devices: platform applications, the endpoints in them, and what is pushed to these."""
