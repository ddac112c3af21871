"""AWS IAM, the keeper of identities."""
