"""Turn measurements into conclusions. Pure functions: no files, no clock, no torch.

`assemble` makes the profile of a recording. `profile`, `predict`, `advice`, `compare`, `job` and
`sweep` hold the parts of the analysis, `thresholds` the limits that several of them share.
"""
