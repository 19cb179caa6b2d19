"""Copies of a sample of the data, in other formats and on other storages, for the trials to read.

Only `sweep.run` and `sweep.runner` use it.
"""
