"""`pipeprof.tune`: the loader's settings, chosen while training runs.

Batches and their order stay those of the user's loader. May be imported by `pipeprof` and `cli`.
"""
