"""The languages Redrive speaks: each package parses, authorises, checks limits, calls one engine verb, renders."""
