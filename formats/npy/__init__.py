"""NumPy's own files: arrays in `.npy`, several of them in `.npz`. They are read, and not written.

`arrays` reads headers and turns arrays into columns, `archive` opens what was fetched of an
`.npz`, and `format` plans and drives the reading.
"""
