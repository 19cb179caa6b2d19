"""Everything that stands around a DataLoader while it is iterated.

`instrument` measures it, `dataset` is the loader that `open_dataset` gives, `autopatch` finds the
loaders of a script nobody edited, and `live` shows a run while it continues. `tensors` and
`bad_data` are what the first two share: batches, and what was left out of them.
"""
