"""Trains on tf.data, in the interpreter that has TensorFlow; see `benchmarks.tune_peers`.

    python tune_tfdata.py jpeg|csv FOLDER PARALLEL STEP_S SECONDS

PARALLEL is the number of parallel calls, or ``auto`` for AUTOTUNE. Prints the batches/s of the
whole run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import tensorflow as tf

SIDE, BATCH, COLUMNS = 224, 16, 40


def photo(path: tf.Tensor) -> tf.Tensor:
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.cast(tf.image.resize(image, (SIDE, SIDE)), tf.uint8)


def table(path: tf.Tensor) -> tf.Tensor:
    lines = tf.strings.split(tf.strings.strip(tf.io.read_file(path)), "\n")
    return tf.stack(tf.io.decode_csv(lines[1:], [[0.0]] * COLUMNS), axis=1)


def main() -> None:
    work, folder, parallel, step_s, seconds = sys.argv[1:]
    calls = tf.data.AUTOTUNE if parallel == "auto" else int(parallel)
    files = [str(path) for path in sorted(Path(folder).iterdir())]
    data = tf.data.Dataset.from_tensor_slices(files).repeat()
    if work == "jpeg":
        data = data.map(photo, num_parallel_calls=calls).batch(BATCH)
    else:
        data = data.map(table, num_parallel_calls=calls)
    data = data.prefetch(tf.data.AUTOTUNE if parallel == "auto" else 2)
    start, batches = time.perf_counter(), 0
    for _ in data:
        time.sleep(float(step_s))
        batches += 1
        if time.perf_counter() - start > float(seconds):
            break
    print(batches / (time.perf_counter() - start))


if __name__ == "__main__":
    main()
