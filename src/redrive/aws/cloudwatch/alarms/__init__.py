"""CloudWatch alarms: definitions, evaluation, and the actions that transitions lead to."""
