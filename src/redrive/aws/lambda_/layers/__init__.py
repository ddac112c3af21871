"""Layers and their versions."""
