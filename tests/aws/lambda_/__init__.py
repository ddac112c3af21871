"""AWS Lambda, below the wire."""
