"""OpenTelemetry: requests and attempts as spans, and a node's meters, sent to a collector by OTLP over HTTP."""
