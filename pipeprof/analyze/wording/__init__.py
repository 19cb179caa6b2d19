"""Words for what the analysis found: codes and figures in, sentences and code to paste out.

All words of a profile's findings, advice and ceilings, of a comparison and of a sweep are made
here, once. Only `analyze.assemble` and the rooms `compare` and `sweep` may import it.
"""
