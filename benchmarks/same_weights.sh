#!/usr/bin/env bash
# Refuses a folder whose steps were done with other weights or tables. The first call records the files' digests.
#
#     benchmarks/same_weights.sh OUT FILE...
set -euo pipefail
out=$1
shift
now=$(sha256sum "$@" | cut -d " " -f 1)
if [ ! -e "$out/weights.sha256" ]; then
    echo "$now" > "$out/weights.sha256"
elif [ "$(cat "$out/weights.sha256")" != "$now" ]; then
    echo "error: $out holds the steps of other weights, or on other tables: give another folder" >&2
    exit 1
fi
