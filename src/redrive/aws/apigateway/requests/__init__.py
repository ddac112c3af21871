"""Requests to APIs on their way: who may ask, what answers, and how it is counted and logged."""
