#!/bin/bash
# Shards from a Slurm array: every task writes its share of the parts to one shared folder.
#
#   sbatch docs/examples/slurm_prior_gen.sh
#
# No task waits for another. If a task died, submit it again (sbatch --array=7 ...): it makes what is
# missing, and published parts are never made twice. SHARES must then stay the same. It is therefore
# a separate number, not Slurm's count of tasks, which is that of the submission.
#
#SBATCH --job-name=prior-gen
#SBATCH --array=1-32
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-cpu=1G
#SBATCH --time=04:00:00
set -euo pipefail

SHARES=${SHARES:-32} # the upper end of --array
CONFIG=${CONFIG:-paper}
STAGES=${STAGES:-1-100}
OUT=${OUT:-shards}

# Every core makes its own tasks; more threads in the linear algebra would only compete with them.
export OMP_NUM_THREADS=1

prior-gen --config "$CONFIG" --stages "$STAGES" --out "$OUT" \
    --part-range "$SLURM_ARRAY_TASK_ID/$SHARES" --jobs "${SLURM_CPUS_PER_TASK:-1}"

# When all tasks are done: `prior-gen info shards --stages 1-100 --shares 32` names the tasks that
# left something out, as --array=... and as commands. `prior-gen verify shards` re-reads every byte.
