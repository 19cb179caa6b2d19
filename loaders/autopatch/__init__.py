"""Profile every loader that a script iterates, for `pipeprof run`.

It uses `loaders.instrument`; only the command line uses it.
"""
