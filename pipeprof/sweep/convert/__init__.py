"""Write copies of a sample of the data, in other formats and on other storages, for trials.

Only `sweep.plan` and `sweep.runner` may import this package.
"""
