"""The languages Redrive speaks: each parses, authorises, checks limits, calls one engine verb and renders."""
