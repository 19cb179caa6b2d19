"""JSON Lines: pyarrow parses it; the rest cuts bytes into lines, and finds the columns.

`format` plans and drives the reading, `columns` finds the types, `parser` turns lines into record
batches, and `encoder` writes.
"""
