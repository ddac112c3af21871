"""AWS KMS, through boto3."""
