"""WebDataset: tar archives of samples, whose files share a name and differ by their extension.

`members` cuts a tar stream into its files, `cells` turns their bytes into columns, `format` plans
and drives the reading, and `encoder` writes.
"""
