#!/usr/bin/env bash
# The main job from end to end: the same rows in three formats, each fed to an emulated
# accelerator at several settings of a real DataLoader. `make demo` sets up and runs it.
#   DEMO_SIZE=24MB   logical size of the data       DEMO_STEP_MS=80   the accelerator's step
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS

echo "1/2  Data: the same rows as CSV, Parquet and TFRecord, in demo/data"
for format in csv parquet tfrecord; do
  pipeprof generate "demo/data/$format" --kind tabular --format "$format" \
    --size "${DEMO_SIZE:-24MB}" --seed 0
done

echo
echo "2/2  Sweep: workers 0, 1, 2, 4 and prefetch 1, 4; an emulated accelerator"
results=demo/results/$(date +%Y%m%d-%H%M%S)
pipeprof sweep demo/data/csv demo/data/parquet demo/data/tfrecord \
  --workers 0,1,2,4 --prefetch 1,4 --batch-size 4096 --step-ms "${DEMO_STEP_MS:-80}" \
  --trial-time 3 --warmup-time 1 --out "$results"

echo
echo "Saved profiles: $results (a file a trial, and sweep.json)"
echo "Done in $((SECONDS - started)) s."
