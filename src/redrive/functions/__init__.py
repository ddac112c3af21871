"""Functions: user code run in processes that speak Lambda's Runtime API."""
