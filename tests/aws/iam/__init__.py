"""Users, roles and sessions, and what they may do, on a whole server without its sockets."""
