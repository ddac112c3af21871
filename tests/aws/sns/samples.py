"""Documents that stand in SNS's guide."""

from typing import Any, Final

#: Of the page about retries: 3 at once, 2 after 1 s, 10 from 1 s to 60 s, 35 after 60 s.
DELIVERY_POLICY: Final[dict[str, Any]] = {
    "healthyRetryPolicy": {
        "minDelayTarget": 1,
        "maxDelayTarget": 60,
        "numRetries": 50,
        "numNoDelayRetries": 3,
        "numMinDelayRetries": 2,
        "numMaxDelayRetries": 35,
        "backoffFunction": "exponential",
    },
    "throttlePolicy": {"maxReceivesPerSecond": 10},
}
