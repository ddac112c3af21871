"""Requests nobody would send: whatever comes, an answer below 500, and a refusal that changed nothing."""
