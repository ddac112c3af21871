"""Amazon's services, a line each: a new one is a folder and its line here.

The folder's `service.py` holds what is particular to the service as one value, `SERVICE`. It is found by its name, so
that no module of the way in knows a service, and costs little to import: what carries operations out is imported when the
service is first asked for.
"""

from typing import Final

#: The folders, by botocore's names of the services.
FOLDERS: Final = {
    "sqs": "sqs",
    "sns": "sns",
    "cloudwatch": "cloudwatch",
    "logs": "logs",
    "kms": "kms",
    "firehose": "firehose",
    "lambda": "lambda_",
    "apigateway": "apigateway.rest",
    "apigatewayv2": "apigateway.http",
    "ssm": "ssm",
    "cloudformation": "cloudformation",
    "s3": "s3",
    "iam": "iam",
    "sts": "sts",
}
