"""What one run shows: stages, stall and its causes, intervals, the verdict.

It imports nothing else of the analysis but its thresholds; all other rooms of it build on this one.
"""
