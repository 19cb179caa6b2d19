"""What differs between runs, and whether that is more than chance.

It builds on `analyze.profile`. The command `compare` and `analyze.sweep` use it.
"""
