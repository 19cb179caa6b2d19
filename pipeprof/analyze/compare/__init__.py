"""Compare runs: what differs between them, and whether the difference is more than chance.

The package builds on `analyze.profile`. The command `compare` and `analyze.sweep` use it.
"""
