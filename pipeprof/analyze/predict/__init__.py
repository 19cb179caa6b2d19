"""Predict what another setting would give: simulate the DataLoader on the batches of a run.

It builds on `analyze.profile`. Advice and sweeps use it.
"""
