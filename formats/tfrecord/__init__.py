"""TFRecord: framing, and `tf.train.Example` records decoded without TensorFlow.

`framing` finds the records, `scan` reads a block of them with NumPy and `example` by protobuf what
the scan refuses, `columns` makes Arrow columns of what was scanned, `format` drives the reading,
and `encoder` writes. `varint` is a part of the scan.
"""
