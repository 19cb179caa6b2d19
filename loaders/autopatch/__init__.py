"""`pipeprof run`: finds every loader that a script iterates, and watches it.

It uses `loaders.instrument`; only the command line uses it.
"""
