"""What another setting would give: from the batches of a run, by a simulated DataLoader.

It builds on `analyze.profile`. Advice and sweeps use it.
"""
