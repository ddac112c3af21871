"""Code of the functions that tests invoke: it runs in processes of its own."""
