"""The composition root: the only packages that know concrete parts, one file for each extension of the server.

A new facade is a module here with a function `extension(core)`, and a line in `redrive.app`.
"""
