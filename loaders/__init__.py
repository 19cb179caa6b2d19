"""Measure data loaders while they are iterated, and load data sets from any storage.

`instrument` measures a loader, and `dataset` has the data set of `open_dataset`. `autopatch` finds
the loaders of a script that is not edited. `tune` changes the settings of a loader while training
runs. `live` shows a run while it continues. `instrument` and `dataset` share `tensors`, the
batches, and `bad_data`, the count of damaged data.
"""
