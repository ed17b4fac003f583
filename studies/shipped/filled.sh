#!/usr/bin/env bash
# What `smol:paft` gains and loses where it is replaced by its continuation, `filled` of studies/reads/fill.toml, seed 0.
#
#   NEW=smol,adapter=FOLDER studies/shipped/filled.sh [FOLDER]     two runs, half an hour of one core with bfloat16; they resume
#
# Written and committed, with a hash, before it was run. Whether it is replaced is decided by fill.toml, and not here: this
# says what that plan does not measure. The tasks are the 24 look-ups of apart.sh, parameters.sh and mended.sh (poi, seed 2000,
# test pool), a world whose names the continuation was not trained on (it was on those of poi-2); smol:paft is known on
# them, and its kept episodes are what NEW is compared with, paired by task. What is asked:
# 1. Shifts of the graph, errors and formats: what the continuation was not trained on (but for merged tools and errors).
# 2. Options and padding, opaque names, new descriptions, another list: does it keep what `mended` gained?
# 3. Parameters with names that say nothing, synonyms, other texts, both: does the gain hold in this world?
# 4. `realistic`, of all six kinds, with both adapters (`RUNS=2`, which needs nothing that is kept).
# Said will be: "gained" or "lost" where the 95% interval of the difference does not hold 0, "not shown" otherwise. Known: the table of
# smol:paft, the look at the development pool, and of NEW its first 90 episodes of fill.toml (48 of 48 passed).
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${1:-runs/shipped-filled}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
RUNS=${RUNS:-1 2}
O=identity_erasure:3
N=opaque_parameters:3
SHIFTS=(transient_error:2 redirect:2 format_drift:2 merged_tools:2 split_tools:2 new_precondition:2 reversed_order:2
    schema_noise:2 "$O" "$O+described_by_data:3" "$O+other_tools:2" "$O+described_by_data:3+shuffled_list:2"
    "$N" "$O+$N" parameter_rename:3 retold_parameters:3 "$N+retold_parameters:3")
for run in $RUNS; do
    if [ "$run" = 1 ]; then
        $TOOLSHIFT run --agent "$NEW" --pool test --seed 2000 --max-repeats 6 --world poi --tasks 24 \
            --kind listing --kind hours --kind route --kind visit "${SHIFTS[@]/#/--shift=}" --out "$OUT/filled" || [ $? -eq 1 ]
    else
        $TOOLSHIFT run --agent "${OLD:-smol:paft}" --agent "$NEW" --pool test --seed 2000 --max-repeats 6 --world poi \
            --suite realistic --out "$OUT/filled_realistic" || [ $? -eq 1 ]
    fi
done
