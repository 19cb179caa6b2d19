"""Run sweeps: `plan` makes a plan of trials, `runner` runs them, and `trial` runs one of them.

Only the command line may import this package.
"""
