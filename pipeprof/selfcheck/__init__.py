"""Pipelines of known truth, run on the user's own machine: is what pipeprof says right here?

A sleep oversleeps and a burn is interrupted, more so on a busy machine. So a pipeline's truth is
not what it was asked to do, but what it did: its own code reads the clock around everything it
does, and its batches carry the readings to the training loop, which clocks itself as well. These
readings pass through none of pipeprof's hooks, and they are of the very batches that pipeprof
measured; so the two must agree, however noisy the machine.
"""
