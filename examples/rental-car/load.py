"""Sends orders through the front door of the rental-car stack: `python load.py 20`, `python load.py 3 --car unicycle`."""

import argparse
import json
import os
import urllib.error
import urllib.request
from collections import Counter

import boto3

SERVER = os.environ.get("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
CARS = ("compact", "van", "truck", "minibus")
STATUSES = ("confirmed", "confirmed", "confirmed", "canceled", "draft")


def front_door(stack):
    """The address of POST /orders on this server, by the stack's output."""
    described = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    api = next(output["OutputValue"] for output in described["Outputs"] if output["OutputKey"] == "ApiId")
    return f"{SERVER}/_aws/execute-api/{api}/prod/orders"


def order(number, car):
    """The order of a number: every fifth is a draft, and the one before it a cancellation."""
    return {
        "order": f"order-{number}",
        "car": car or CARS[number % len(CARS)],
        "status": "confirmed" if car else STATUSES[number % len(STATUSES)],
    }


def post(url, document):
    """Post an order; the status of the answer."""
    body = json.dumps(document).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def main():
    """Send as many orders as were asked for, and say how they were answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("orders", type=int, nargs="?", default=20)
    parser.add_argument("--car", help="all of them are for this one; billing and fulfilment know no unicycle")
    parser.add_argument("--stack", default="rental")
    asked = parser.parse_args()
    url = front_door(asked.stack)
    answers = Counter(post(url, order(number, asked.car)) for number in range(asked.orders))
    print(", ".join(f"{count} orders answered {status}" for status, count in sorted(answers.items())))


if __name__ == "__main__":
    main()
