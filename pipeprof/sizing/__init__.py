"""Pure arithmetic about accelerators, storage and clusters.

All of it is in `formulas`, which `sheet` fills in; `inputs` and `sources` say what is given, and
`cluster` simulates what averages hide. The command ``size`` uses it, through `size` and `sources`.
"""
