"""Bills orders: each goes to the billing system, and what that system does not take is this function's failure."""

import json
import os
import urllib.request
from typing import Any

URL = os.environ.get("BILLING_URL", "")


def handler(event: dict[str, Any], _context: object) -> None:
    """Bill the orders of an event, which SNS sends one by one."""
    for record in event["Records"]:
        order = json.loads(record["Sns"]["Message"])
        if order["status"] == "confirmed":
            bill(order)
        print(json.dumps({"billed": order["order"], "status": order["status"]}))


def bill(order: dict[str, str]) -> None:
    """Hand an order to the billing system; whatever it answers but success is an exception."""
    if order["car"] == "unicycle":
        raise ValueError(f"{order['order']}: nobody rents a unicycle out")
    if URL:
        document = json.dumps(order).encode()
        request = urllib.request.Request(URL, document, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=5).close()
