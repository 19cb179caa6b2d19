"""Parquet: pyarrow decodes it; the rest fetches only the bytes that the asked columns need.

`footer` finds the columns' bytes, `format` plans and drives the reading, `row_groups` decodes what
came, and `encoder` writes.
"""
