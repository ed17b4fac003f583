#!/usr/bin/env bash
# The two shipped adapters where changes are mild, and where releases are as published servers had them.
#
#   studies/shipped/run.sh [FOLDER]     two runs, half an hour of one core with bfloat16; they resume
#
# Written and committed, with a hash, before it was run. What is asked:
# 1. Renaming: severities 1 and 2 of the three renamings of the decisive study, which took severity 3 alone.
#    Accuracy at each severity, with intervals, and the drop from clean. Expected: `static` falls with severity.
# 2. Releases as they are: `realistic`, 48 tasks, each under one published release. Accuracy beside clean, and the
#    difference between the two adapters, paired by task. Nothing is hoped for.
# New worlds (seed 2000), test pool; look-ups for the first, all six kinds for the second. One trial, greedy.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${1:-runs/shipped}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
AGENTS=(--agent smol:static --agent smol:paft --pool test --seed 2000 --max-repeats 6)
SHIFTS=()
for shift in identity_erasure semantic_rename semantic_trap; do
    SHIFTS+=(--shift "$shift:1" --shift "$shift:2")
done
$TOOLSHIFT run "${AGENTS[@]}" --world poi --tasks 24 --kind listing --kind hours --kind route --kind visit \
    "${SHIFTS[@]}" --out "$OUT/severities" || [ $? -eq 1 ]
$TOOLSHIFT run "${AGENTS[@]}" --world poi --suite realistic --out "$OUT/realistic" || [ $? -eq 1 ]
