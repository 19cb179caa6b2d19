"""CSV: pyarrow parses it; the rest finds whole rows in blocks of bytes, and types in text.

`rows` cuts bytes into whole rows, `parser` turns them into record batches, `format` plans and
drives the reading, and `encoder` writes.
"""
