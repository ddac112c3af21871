"""The console's pages: each takes a visit and gives a page, without HTTP and without SQL."""
