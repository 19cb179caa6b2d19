"""Compute what storage, nodes and checkpoints accelerators need.

`formulas` has all formulas, and `sheet` evaluates them. `inputs` and `sources` provide the numbers.
`cluster` simulates effects that averages hide. The command ``size`` calls `size` and `sources`.
"""
