"""What to change: ceilings, what each cause is worth, findings, recommendations.

It builds on `analyze.profile` and `analyze.predict`. Only `analyze.assemble` uses it.
"""
