"""The console in Debian's Chromium."""
