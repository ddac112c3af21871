"""kill -9 at a random moment, again and again: nothing acknowledged is lost, nothing settled comes back."""
