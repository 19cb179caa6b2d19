"""Read files on any storage as ready batches, shared among ranks and workers: `open_dataset`.

It does not import `loaders.instrument`. The sweep uses it.
"""
