#!/usr/bin/env bash
# Do names and texts of parameters tell `smol:paft` which tool is meant, where the rest of the list is new?
#
#   studies/shipped/parameters.sh [FOLDER]     one run, ten minutes of one core with bfloat16; it resumes
#
# Written and committed, with a hash, before it was run. In apart.sh parameters keep names and texts in every row, and the new
# descriptions repeat the texts. Here they change: names that say nothing (`opaque_parameters`), other texts (`retold_parameters`, by
# hand for this world), or both; under opaque names of tools, with descriptions as trained and written anew (which then repeat
# the new texts), and, with both, in another order. Under true names of tools too. The tasks are those of apart.sh (24
# look-ups of poi, seed 2000, test pool; one adapter, greedy). Types, choices and patterns of values stay.
# Said will be: a change of parameters "breaks it" where at least 25 points (6 of 24 tasks) are lost against the same without
# it, paired by task, and the 95% interval is above 0; "costs nothing that can be told" where it holds 0; else as it is. The
# sentence of the pages that follows: where opaque names with new descriptions (19 of 24 in apart.sh) break with both changes
# and names with trained descriptions do not, "what it reads of new descriptions is what they share with the parameters"; where
# they do not break, "it does not need the parameters". One seed of one fit: what is said is said of the adapter that ships.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${1:-runs/shipped-parameters}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
O=identity_erasure:3
D=described_by_data:3
N=opaque_parameters:3
T=retold_parameters:3
SHIFTS=("$O" "$O+$N" "$O+$T" "$O+$N+$T"
    "$O+$D" "$O+$D+$N" "$O+$D+$T" "$O+$D+$N+$T"
    "$O+$D+$N+$T+shuffled_list:2" "$N+$T" "$D+$N+$T")
$TOOLSHIFT run --agent smol:paft --pool test --seed 2000 --max-repeats 6 --world poi --tasks 24 \
    --kind listing --kind hours --kind route --kind visit "${SHIFTS[@]/#/--shift=}" --out "$OUT/parameters" || [ $? -eq 1 ]
