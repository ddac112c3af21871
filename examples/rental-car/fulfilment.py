"""The fulfilment system: empties its queue, and fails with what it does not know. `python fulfilment.py`."""

import argparse
import json

import boto3

KNOWN = ("compact", "van", "truck", "minibus")


def fulfil(message):
    """Fulfil the order that a notification carries; its number."""
    order = json.loads(json.loads(message["Body"])["Message"])
    if order["car"] not in KNOWN:
        raise ValueError(f"{order['order']}: there is no {order['car']}")
    return order["order"]


def main():
    """Receive until nothing comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", default="Rental-Fulfilment")
    parser.add_argument("--wait", type=int, default=1, help="seconds that the server waits for an order")
    asked = parser.parse_args()
    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName=asked.queue)["QueueUrl"]
    options = {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": asked.wait}
    fulfilled = failed = 0
    while messages := sqs.receive_message(**options).get("Messages"):
        for message in messages:
            try:
                fulfil(message)
            except ValueError as error:
                print("failed:", error)
                failed += 1
                # Given back at once; by itself it would come again when the visibility timeout ends.
                sqs.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
                )
            else:
                fulfilled += 1
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    print(f"{fulfilled} orders fulfilled, {failed} attempts failed")


if __name__ == "__main__":
    main()
