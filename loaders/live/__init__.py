"""Show a run while it continues, as a panel at the bottom of the terminal or as lines of a log.

The profiler in `loaders.instrument` passes it the rows that it records anyway.
"""
