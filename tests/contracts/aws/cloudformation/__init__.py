"""CloudFormation as boto3 and the AWS CLI see it, on each store."""
