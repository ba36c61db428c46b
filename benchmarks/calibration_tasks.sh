#!/usr/bin/env bash
# Makes held-out tasks of the default weights' prior, on which the interval of the class prior is fitted:
#     benchmarks/calibration_tasks.sh shards/calibration
# Tables are small, and two of five have only a handful of labelled rows, so that the fit covers such
# tables, too.
set -euo pipefail
prior-gen --config gpu_deep_long --set prior.seed=90 --set prior.tail_steps=100 \
    --set prior.extensions.share=1.0 --set prior.extensions.few_labeled=0.4 \
    --set "prior.extensions.few_labeled_rows=[5,40]" --set "prior.n_labeled=[30,200]" \
    --set prior.extensions.max_rows=600 --stages 2 --split heldout --part-range 1/4 --out "$1"
