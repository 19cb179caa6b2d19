"""A run in the terminal while it continues: a panel at the bottom, or lines of a log.

The profiler in `loaders.instrument` hands it the rows that it records anyway.
"""
