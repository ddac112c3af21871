"""Notifications to mobile devices, handed to the push services of Apple, Google and Amazon."""
