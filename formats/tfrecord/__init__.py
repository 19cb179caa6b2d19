"""TFRecord: framing, and `tf.train.Example` records decoded without TensorFlow.

`framing` finds the records. `scan` reads a block of them with NumPy, and `example` reads by
protobuf what the scan refuses. `columns` makes Arrow columns, `format` drives the reading, and
`encoder` writes. `varint` belongs to the scan.
"""
