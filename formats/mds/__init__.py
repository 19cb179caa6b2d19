"""MDS, the shards of MosaicML Streaming, read and written without that package.

`layout` reads where the samples and their columns lie, `columns` turns bytes into columns, `format`
plans and drives the reading, and `encoder` writes.
"""
