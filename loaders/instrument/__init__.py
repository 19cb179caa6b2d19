"""The measuring of a loader: hooks in its workers, observers and a profiler in the main process.

It knows nothing of `loaders.dataset`. `loaders.autopatch`, the sweep and the self-check use it.
"""
