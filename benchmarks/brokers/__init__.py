"""Other brokers beside Redrive, under one load."""
