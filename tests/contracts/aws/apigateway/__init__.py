"""API Gateway through boto3, and its APIs through plain HTTP."""
