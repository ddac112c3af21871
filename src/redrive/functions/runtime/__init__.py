"""Runtime clients and the launcher: they run in a function's process, which may see this folder at `/var/runtime`."""
