"""Patches of fsspec, Python's files and NumPy that record what a user's data set reads.

The hooks in `loaders.instrument` install them in workers.
"""
