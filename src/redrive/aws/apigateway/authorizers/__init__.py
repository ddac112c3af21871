"""Authorizers of APIs: functions and issuers of tokens that decide who may ask."""
