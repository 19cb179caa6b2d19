"""Decide what to change: ceilings, the worth of each cause, findings and recommendations.

The package builds on `analyze.profile` and `analyze.predict`. Only `analyze.assemble` imports it.
"""
