"""From what was measured to what it means. Pure functions: no files, no clock, no torch.

`assemble` makes the profile of a recording. `profile`, `predict`, `advice`, `compare` and `sweep`
are its rooms, and `thresholds` what they share.
"""
