"""What a sweep has found, and what it should try next.

It builds on the other rooms of the analysis but `advice`. The room `pipeprof.sweep` uses it.
"""
