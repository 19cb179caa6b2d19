"""`open_dataset`: files on any storage as ready batches, shared out to ranks and workers.

It knows nothing of `loaders.instrument`. The sweep and the generated data sets use it.
"""
