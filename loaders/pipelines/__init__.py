"""Find out what the stages of loaders that work in threads do: torchdata.nodes, Grain, SPDL, and
the iterators of Ray Data.

Each library has a file with a function ``find``. It looks at one object, and returns its stages
with timers attached, or ``None`` where the object is none of its library's. No file imports its
library: where an object of it exists, it is imported already. `observer` tries them in turn.
"""
