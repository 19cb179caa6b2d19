"""Arrow IPC: pyarrow decodes it; the rest finds out which bytes it will ask for.

`file_layout` finds the record batches of a file, `stream_batches` those of a stream, `format` plans
and drives the reading, and `encoder` writes.
"""
