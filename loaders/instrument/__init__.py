"""Measure a loader, by hooks in its workers, and observers and a profiler in the main process.

It does not import `loaders.dataset`. `loaders.autopatch`, the sweep and the self-check use it.
"""
