"""Turn the codes and figures of the analysis into sentences and code to paste.

This package makes all sentences of a profile's findings, advice and ceilings, of a comparison and
of a sweep. Only `analyze.assemble`, `analyze.compare` and `analyze.sweep` may import it.
"""
