#!/usr/bin/env bash
# What `smol:paft` gains and loses where it is replaced by its continuation, `mended` of studies/reads/mend.toml, seed 0.
#
#   studies/shipped/mended.sh [FOLDER]     two runs, 25 minutes of one core with bfloat16; they resume
#
# Written and committed, with a hash, before it was run. Whether it is replaced is decided by mend.toml, and not here: this
# says what that plan does not measure. What is asked:
# 1. Shifts of the graph, errors and formats, which the old one was trained on and the continuation (but for errors) was not:
#    accuracy of both on 24 look-ups, paired by task. Expected: the continuation forgets some of it.
# 2. Options, padding, opaque names with new descriptions: the same tasks, in a world whose names the continuation was not
#    trained on (it was on those of poi-2).
# 3. `realistic`, of all six kinds, two of which the continuation was not trained on.
# The worlds, tasks and pool are those of run.sh (seed 2000, test), where the old one is known.
# OLD and NEW are agents; the old adapter comes from the history of the repository.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${1:-runs/shipped-mended}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
if [ -z "${OLD:-}" ]; then
    mkdir -p "$OUT/before"
    git archive 9f643bff src/toolshift/agents/adapters/paft | tar -x --strip-components=5 -C "$OUT/before"
    [ -f "$OUT/before/adapter_model.safetensors" ] || xz -d "$OUT/before/adapter_model.safetensors.xz"
    OLD=smol,adapter=$OUT/before,name=before
fi
NEW=${NEW:-smol:paft}
AGENTS=(--agent "$OLD" --agent "$NEW" --pool test --seed 2000 --max-repeats 6)
SHIFTS=(identity_erasure:3 identity_erasure:3+described_by_data:3 transient_error:2 redirect:2 format_drift:2 schema_noise:2
    merged_tools:2 split_tools:2 new_precondition:2 reversed_order:2)
$TOOLSHIFT run "${AGENTS[@]}" --world poi --tasks 24 --kind listing --kind hours --kind route --kind visit \
    "${SHIFTS[@]/#/--shift=}" --out "$OUT/forgotten" || [ $? -eq 1 ]
$TOOLSHIFT run "${AGENTS[@]}" --world poi --suite realistic --out "$OUT/realistic" || [ $? -eq 1 ]
