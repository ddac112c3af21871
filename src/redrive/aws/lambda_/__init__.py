"""AWS Lambda: functions that Redrive runs, invoked at once or as deliveries."""
