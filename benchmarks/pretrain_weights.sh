#!/usr/bin/env bash
# Continues pretraining from weights and makes candidates for judge_weights.sh.
#
#     benchmarks/pretrain_weights.sh CONFIG START OUT [KEY=VALUE...]
#
# CONFIG is a path or a shipped name, START is `default` or a .safetensors file, and KEY=VALUE overrides the
# config (prior.seed=77). The generator writes OUT/shards while the trainer follows it, with its run in OUT/run.
# Then OUT/end.safetensors has the run's final weights; OUT/quarter and OUT/half are a quarter and half of the
# way back to START; all are in bfloat16. After a kill or a time limit (train.max_seconds=500), the same command
# resumes. Uses JOBS generator processes and PROCESSES trainer processes. Their defaults are the number of cores
# on a CPU; with GPUs, one trainer process each, and as JOBS the cores that these and their loaders leave free.
# Run it in the project's environment (python and torchrun on the PATH; the project need not be installed).
set -euo pipefail
[ $# -ge 3 ] || { sed -n '4p' "$0" | cut -c3- >&2; exit 2; }
config=$1 start=$2
[ -e "$config" ] && config=$(realpath "$config")
[ -e "$start" ] && start=$(realpath "$start")
mkdir -p "$3"
out=$(realpath "$3")
shift 3
cd "$(dirname "$(realpath "$0")")/.."
# The card records START: use its path within the checkout, which does not depend on where that is.
[ -e "$start" ] && start=$(realpath --relative-base="$PWD" "$start")
export OMP_NUM_THREADS=1
cores=$(python -c "import os; print(os.cpu_count() or 1)")
gpus=$(python -c "import torch; print(torch.cuda.device_count())")
if [ "$gpus" -gt 0 ]; then
    : "${PROCESSES:=$gpus}" "${JOBS:=$((cores > 6 * gpus ? cores - 5 * gpus : 1))}"
else
    : "${PROCESSES:=$cores}" "${JOBS:=$cores}"
fi

# A machine with a GPU may have all libraries but not this project's commands.
command -v prior-gen > /dev/null && generate=(prior-gen) || generate=(python -m prior_gen)
command -v puicl > /dev/null && puicl=(puicl) || puicl=(python -m puicl_cli)

overrides=()
for override in "$@"; do overrides+=(--set "$override"); done
stages=$(python - "$config" "$@" << 'END'
import sys
from puicl_config import InputError, load_config

try:
    print(load_config(sys.argv[1], sys.argv[2:]).prior.total_stages)
except InputError as error:
    sys.exit(f"error: {error}")
END
)
plan=(--config "$config" "${overrides[@]}" --stages "1-$stages" --jobs "$JOBS" --out "$out/shards")
"${generate[@]}" "${plan[@]}" --dry-run
"${generate[@]}" "${plan[@]}" > "$out/generator.log" 2>&1 &
generator=$!
torchrun --nproc-per-node "$PROCESSES" trainer/main.py --config "$config" --shards "$out/shards" --out "$out/run" \
    train.follow=true train.init_from="$start" "$@" &
trainer=$!
# Neither process outlives this script, and the trainer does not wait for a generator that has failed.
trap 'kill $generator $trainer 2> /dev/null || true; wait' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
generating=1
while kill -0 $trainer 2> /dev/null; do
    if [ $generating = 1 ] && ! kill -0 $generator 2> /dev/null; then
        wait $generator || { cat "$out/generator.log" >&2; exit 1; }
        generating=0
    fi
    sleep 1
done
wait $trainer
if ! python -c "import json, sys; card = json.load(open(sys.argv[1])); sys.exit(card['steps'] < card['of_steps'])" \
    "$out/run/model.json"; then
    echo "not at its end yet: the same command goes on" >&2
    exit
fi
for share in 0 0.25 0.5; do
    case $share in 0) name=end ;; 0.25) name=quarter ;; *) name=half ;; esac
    "${puicl[@]}" weights export "$out/run" --shards "$out/shards" --start-share "$share" --bfloat16 \
        --out "$out/$name.safetensors"
done
