"""The query protocol: forms in, XML or JSON out."""
