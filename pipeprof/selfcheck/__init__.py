"""Check pipeprof on the user's own machine with pipelines whose true times are known.

A sleep lasts longer than requested, and computing is interrupted, above all on a busy machine. A
pipeline's truth is therefore not what it was asked to do but what it did. Its own code reads the
clock around all of its work, and its batches carry the readings to the training loop, which times
itself as well. These readings use none of pipeprof's hooks, and they belong to the same batches
that pipeprof measured. So both must agree, however noisy the machine is.
"""
