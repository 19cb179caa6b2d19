"""Reads that a user's data set makes, recorded by patching fsspec and Python's files.

The hooks in `loaders.instrument` install them in workers.
"""
