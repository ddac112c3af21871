"""The language of templates: read, checked and evaluated without input or output (but for the serverless transform)."""
