#!/usr/bin/env bash
# Are new weights better than those that ship? Makes the measurements by which docs/weights.md decides; the exam is not
# among them.
#
#     benchmarks/judge_weights.sh NEW.safetensors DEVELOPMENT OUT
#
# DEVELOPMENT is the folder of the 16 development tables. Compares NEW with the default weights and writes OUT/*.md: six
# splits in 1 and 16 passes, eight splits thinned to 300 rows, 5 to 50 labelled rows beside 200 others, designs of counts
# (four draws; complete ones, three) and noisy sums. If CHOOSING is set to a folder of tables (`unseen_tables.py --half
# choosing`), also two splits of these in one pass. Steps that are done are skipped. Uses JOBS processes (default 2),
# which share a GPU if there is one. Run it in the project's environment, or set PYTHON.
set -euo pipefail
: "${JOBS:=2}"
new=$(realpath "$1") data=$(realpath "$2") out=$3
here=$(dirname "$(realpath "$0")")
mkdir -p "$out"
export OMP_NUM_THREADS=1

"$here"/same_weights.sh "$out" "$here"/../puicl_model/weights/default.safetensors "$new" \
    "$data"/index.json "$data"/*.csv.gz

step() { # NAME SCRIPT ARGUMENTS...
    local name=$1 script=$2
    shift 2
    [ -e "$out/$name.md" ] && return
    "${PYTHON:-python}" "$here/$script" "$@" > "$out/$name.part"
    mv "$out/$name.part" "$out/$name.md"
}

step development compare_networks.py --models default "$new" --data "$data" --splits 6 --passes 1 16 --jobs "$JOBS" \
    --out "$out/development.csv"
if [ -n "${CHOOSING:-}" ]; then
    step choosing compare_networks.py --models default "$new" --data "$CHOOSING" --splits 2 --passes 1 --jobs "$JOBS" \
        --out "$out/choosing.csv"
fi
step few_rows compare_networks.py --models default "$new" --data "$data" --rows 300 --splits 8 --passes 1 16 --jobs "$JOBS" \
    --out "$out/few_rows.csv"
step few_labeled few_labeled.py --models default "$new" --data "$data" --draws 9 --jobs "$JOBS"
step counts count_designs.py --models default "$new" --draws 4 --jobs "$JOBS"
step complete_designs count_designs.py --models default "$new" --draws 3 --complete --jobs "$JOBS"
step noisy_sums noisy_sums.py --models default "$new" --jobs "$JOBS"
tail -n 8 "$out"/*.md
