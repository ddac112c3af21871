"""The console's pages over the router, without a browser."""
