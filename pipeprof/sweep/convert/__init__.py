"""Copies of a sample of the data, in other formats and on other storages, for the trials to read.

Only `sweep.plan` and `sweep.runner` use it.
"""
