"""Answers of the real services that were recorded where one would not expect them, asked of a server in memory."""
