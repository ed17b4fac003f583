#!/usr/bin/env bash
# What of a rewritten list breaks `smol:paft`: its order, tools of another domain, or other descriptions?
#
#   studies/shipped/apart.sh [FOLDER]     one run, ten minutes of one core with bfloat16; it resumes
#
# Written and committed, with a hash, before it was run. mend.toml found 93% of look-ups passed under opaque names, and 10% where
# descriptions are written anew and the list is shuffled amid other tools as well; mended.sh 19 of 24 with new descriptions alone.
# Here all parts stand apart, on the tasks of mended.sh (24 look-ups of poi, seed 2000, test pool; one adapter, greedy):
# order (`shuffled_list`), tools of another domain behind ours (`other_tools_last`), both (`other_tools`), and descriptions
# (`described_by_data`), under opaque names; both lists and descriptions under true names too.
# Said will be: a part "breaks it" where at least 25 points (6 of 24 tasks) are lost against the same without that part, paired by
# task, and the 95% interval is above 0; "costs nothing that can be told" where it holds 0; else as it is. Two parts break it
# "only together" where neither breaks it alone and both do. One seed of one fit: what is said is said of the adapter that ships.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${1:-runs/shipped-apart}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
O=identity_erasure:3
D=described_by_data:3
SHIFTS=("$O" "$O+shuffled_list:2" "$O+other_tools_last:2" "$O+other_tools:2"
    "$O+$D" "$O+$D+shuffled_list:2" "$O+$D+other_tools_last:2" "$O+$D+other_tools:2"
    "other_tools:2" "$D" "$D+other_tools:2")
$TOOLSHIFT run --agent smol:paft --pool test --seed 2000 --max-repeats 6 --world poi --tasks 24 \
    --kind listing --kind hours --kind route --kind visit "${SHIFTS[@]/#/--shift=}" --out "$OUT/apart" || [ $? -eq 1 ]
