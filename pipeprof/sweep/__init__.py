"""Sweeps: a URL becomes a `plan`, the `runner` runs its trials, and `trial` is one of them.

Only the command line uses it.
"""
