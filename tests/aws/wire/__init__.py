"""The AWS wire, with botocore as the client."""
