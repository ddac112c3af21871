"""Event Grid: a webhook that agrees to get events, a filter, and a batch. Takes `pip install azure-eventgrid`."""

import json
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

from azure.core.credentials import AzureKeyCredential
from azure.eventgrid import EventGridEvent, EventGridPublisherClient

URL = os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566")
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/example"
TOPIC = f"{GROUP}/providers/Microsoft.EventGrid/topics/rentals"
pushed = Queue()


class Hook(BaseHTTPRequestHandler):
    """A webhook: it answers the question whether it wants events, and keeps those it gets."""

    def do_POST(self):
        """Take what is pushed."""
        events = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = b""
        if self.headers["aeg-event-type"] == "SubscriptionValidation":
            answer = json.dumps({"validationResponse": events[0]["data"]["validationCode"]}).encode()
        else:
            pushed.put([event["subject"] for event in events])
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Be quiet."""


def manage(method, resource, body=None):
    """Ask the resource manager, as `az` and azure-mgmt-eventgrid do."""
    url = f"{URL}{resource}?api-version=2025-02-15"
    headers = {"Content-Type": "application/json", "Authorization": "Bearer any"}
    request = urllib.request.Request(url, json.dumps(body or {}).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"{}")


hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
threading.Thread(target=hook.serve_forever, daemon=True).start()

topic = manage("PUT", TOPIC, {"location": "local"})
key = manage("POST", f"{TOPIC}/listKeys")["key1"]
subscription = {
    "destination": {
        "endpointType": "WebHook",
        "properties": {"endpointUrl": f"http://127.0.0.1:{hook.server_port}/", "maxEventsPerBatch": 100},
    },
    "filter": {"subjectBeginsWith": "cars/"},
}
manage("PUT", f"{TOPIC}/eventSubscriptions/billing", {"properties": subscription})

with EventGridPublisherClient(topic["properties"]["endpoint"], AzureKeyCredential(key)) as client:
    client.send(
        [
            EventGridEvent(subject=subject, event_type="Rented", data={"days": 3}, data_version="1")
            for subject in ("cars/7", "vans/1", "cars/8")
        ]
    )
print(sorted(pushed.get(timeout=10)))
manage("DELETE", TOPIC)
hook.shutdown()
hook.server_close()
