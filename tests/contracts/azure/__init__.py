"""Azure's services asked by the clients that people have, on every store."""
