"""Documents of buckets, objects and uploads, who may use them, and their contents."""
