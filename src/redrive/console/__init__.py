"""The web console: pages rendered on the server, over the engine's own verbs."""
