"""Evaluate the trials of a sweep, and choose which setting to try next.

The package builds on all of `analyze` except `advice`. Only `pipeprof.sweep` imports it.
"""
