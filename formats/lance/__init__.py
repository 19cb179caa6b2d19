"""Lance files, decoded by the package `pylance`.

`layout` reads where the columns and their pages lie, and `schema` which types they have. `decoding`
gives the library the fetched bytes. `format` plans and drives the reading, and `encoder` writes.
`table` finds the files of a Lance table.
"""
