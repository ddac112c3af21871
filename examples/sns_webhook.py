"""A webhook that answers 503 twice, and gets the message with the third attempt."""

import json
import os
import queue
import threading
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3

sns = boto3.client(
    "sns",
    endpoint_url=os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566"),
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="test",
)
answers = [200, 503, 503, 200]  # to the question whether it wants to be subscribed, and to three attempts
calls = queue.Queue()


class Webhook(BaseHTTPRequestHandler):
    """Confirms its subscription, and answers as it is told to."""

    def do_POST(self):
        """Take a call."""
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if call["Type"] == "SubscriptionConfirmation":
            urllib.request.urlopen(call["SubscribeURL"]).close()
        status = answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        calls.put((call["Type"], status))

    def log_message(self, *_):
        """Say nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
threading.Thread(target=server.serve_forever, daemon=True).start()

topic = sns.create_topic(Name=f"example-orders-{uuid.uuid4().hex[:8]}")["TopicArn"]
sns.subscribe(
    TopicArn=topic,
    Protocol="http",
    Endpoint=f"http://127.0.0.1:{server.server_port}/",
    Attributes={"DeliveryPolicy": '{"healthyRetryPolicy": {"numRetries": 2, "numNoDelayRetries": 2}}'},
)
print(calls.get(timeout=10))

sns.publish(TopicArn=topic, Message="one car")
for _ in range(3):
    print(calls.get(timeout=10))
sns.delete_topic(TopicArn=topic)
