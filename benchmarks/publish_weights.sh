#!/usr/bin/env bash
# All steps to publish new default weights (or passes) once they are chosen (judge_weights.sh), in order.
#
#     benchmarks/publish_weights.sh EXAM DEVELOPMENT HELDOUT OUT
#
# EXAM and DEVELOPMENT are folders of tables, HELDOUT the shards made by calibration_tasks.sh. Call it first with
# the new weights in place: it writes the interval of the class prior into their card and stops. Commit the card, so
# that results record the commit they are from, and call it again. It then runs the exam, the replay, the sweeps,
# one pass on two splits of the development tables (for the learning curve), rare shares, overlapping classes, noisy
# sums, the guide's pictures, README and card. Steps that are done are skipped; interval, exam and sweeps resume
# where they stopped. JOBS is the number of processes for the interval (default 2). Run it in the project's
# environment (puicl, prior-gen and python on the PATH).
set -euo pipefail
: "${JOBS:=2}"
exam=$(realpath "$1") data=$(realpath "$2") heldout=$(realpath "$3")
mkdir -p "$4"
out=$(realpath "$4")
cd "$(dirname "$(realpath "$0")")/.."
export OMP_NUM_THREADS=1

benchmarks/same_weights.sh "$out" puicl_model/weights/*.safetensors

step() { # NAME COMMAND...
    local name=$1
    shift
    [ -e "$out/$name.done" ] && return
    echo "$(date +%H:%M) $name" >&2
    "$@" > "$out/$name.txt"
    touch "$out/$name.done"
}

step interval python benchmarks/calibrate_class_prior.py --shards "$heldout" --tasks 480 --data "$data" \
    --widen --kept "$out/answers" --jobs "$JOBS" --write
changed=$(git status --porcelain puicl_model)
if [ -n "$changed" ]; then
    echo "the weights and their card are not committed: commit them, then call this again" >&2
    exit 1
fi
step exam puicl bench --data "$exam" --out results/published --methods puicl,puicl_single,puicl_trees,puicl_paper \
    --new-weights
step replay puicl weights verify --replay
step bench_shards prior-gen --config bench --split heldout --tail --out "$out/bench"
step sweeps puicl bench --sweep all --data "$exam" --shards "$out/bench" --out results/published \
    --methods puicl --repeats 1 --new-weights
step learning_curve puicl bench --data "$data" --out "$out/development" --methods puicl_single --repeats 2
step rare_shares python benchmarks/rare_shares.py --data "$data"
step overlapping_classes python benchmarks/overlapping_classes.py --tables 24
step noisy_sums python benchmarks/noisy_sums.py
step pictures python benchmarks/guide_pictures.py --model default
step readme python -m pu_bench.report.readme
step card python -m pu_bench.report.card
echo "what is left: docs (weights.md, weights/, model_card.md, user_guide.md, inference.md, benchmark.md), docs/learning_curve.csv" >&2
