"""Amazon API Gateway: REST and HTTP APIs, and the requests that are sent to them."""
