#!/usr/bin/env bash
# Runs a plan of this folder in slices, on one core, beside other work; the same command goes on.
#
#   studies/reads/run.sh [PLAN]            all slices, one after the other (studies/reads/plan.toml)
#   SLICES=1 studies/reads/run.sh [PLAN]   so many
#
# A slice is at most MINUTES (55) long: it is ended as by Ctrl-C, which leaves a checkpoint of a fit, or the
# episodes of a measurement so far. Touch studies/reads/pause to make it wait between slices, and
# send the process of reproduce SIGSTOP and SIGCONT within one. WORK (studies/reads/work) keeps the stages. After
# each slice, what is measured is taken into studies/stages (freeze.py) and committed, with COMMIT=0 it is not.
set -uo pipefail
cd "$(dirname "$0")/../.."
PLAN=${1:-studies/reads/plan.toml}
PYTHON=${PYTHON:-python}
WORK=${WORK:-studies/reads/work}
MINUTES=${MINUTES:-55}
SLICES=${SLICES:-1000}
export PYTHONPATH=$PWD/src:$PWD/lab/src OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

keep() { # what is measured, compressed and without weights
    "$PYTHON" studies/freeze.py "$WORK" || return
    [ "${COMMIT:-1}" = 1 ] || return 0
    git add studies/stages studies/stages.toml studies/artifacts.toml
    git diff --cached --quiet || git commit -qm "Stages of $PLAN that are measured"
}

for slice in $(seq "$SLICES"); do
    while [ -e studies/reads/pause ]; do sleep 30; done
    before=$(find "$WORK" -path '*/run-*/report.txt' 2>/dev/null | wc -l)
    echo "$(date '+%F %T') slice $slice of $PLAN at $(git rev-parse --short HEAD)"
    timeout --signal=INT --kill-after=600 "${MINUTES}m" env --default-signal=INT nice -n 19 "$PYTHON" -m toolshift reproduce decisive \
        --plan "$PLAN" --work "$WORK" --no-page --threads 1
    code=$?
    echo "$(date '+%F %T') slice $slice ended with $code"
    if [ "$(find "$WORK" -path '*/run-*/report.txt' 2>/dev/null | wc -l)" -gt "$before" ]; then keep; fi
    case $code in
        0) echo "all stages are done"; exit 0 ;;
        124 | 130) ;; # the slice was up: go on
        *) exit "$code" ;;
    esac
done
