"""Documents of functions, layers, URLs and mappings, and how callers name them."""
