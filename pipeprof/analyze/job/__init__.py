"""Join the profiles of the ranks of one job into one verdict.

Only the model and `analyze.profile` are imported here. `analyze.compare` compares runs that do not
wait for each other.
"""
