#!/usr/bin/env bash
# Parameters alone, with tools as trained: synonyms, names that say nothing, other texts.
#
#   studies/shipped/renamed.sh [FOLDER]     one run of 144 episodes, five minutes of one core with bfloat16; it resumes
#   AGENT=... studies/shipped/renamed.sh    the same of another agent; that of before as mended.sh writes it
#
# Not planned: asked after parameters.sh was seen, on its tasks. `renamed` is of smol:paft, `renamed_before` of the one that shipped
# until November 2026, run from a tree that has it (git checkout 9f643bff -- src/toolshift/agents/adapters/paft).
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${1:-runs/shipped-renamed}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
SHIFTS=(parameter_rename:3 identity_erasure:3+parameter_rename:3 opaque_parameters:3 retold_parameters:3)
$TOOLSHIFT run --agent "${AGENT:-smol:paft}" --pool test --seed 2000 --max-repeats 6 --world poi --tasks 24 \
    --kind listing --kind hours --kind route --kind visit "${SHIFTS[@]/#/--shift=}" --out "$OUT/renamed" || [ $? -eq 1 ]
