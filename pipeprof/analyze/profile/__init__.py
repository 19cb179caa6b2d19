"""Show what happened in one run: stages, stall and its causes, intervals, the verdict.

It imports nothing else of the analysis but the shared thresholds. All other parts build on it.
"""
