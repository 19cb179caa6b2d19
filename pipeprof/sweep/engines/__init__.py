"""Run the trials of a sweep elsewhere: on a node of a Ray cluster, or in jobs of Slurm.

`engine.py` says what an engine is, and each other file is one. Only `pipeprof.cli` chooses one.
"""
