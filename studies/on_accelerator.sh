#!/usr/bin/env bash
# Runs the plan of studies/decisive on a machine with an accelerator and without network, in time slices.
#
#   studies/on_accelerator.sh stage  FOLDER          here: weights in parts, and what each part must be
#   studies/on_accelerator.sh join   FOLDER          there: the parts as one file again, checked
#   studies/on_accelerator.sh time   FOLDER WORK     there: one fit and one measurement, and what they took
#   studies/on_accelerator.sh slice  FOLDER WORK MIN there: stages for so many minutes; the same command goes on
#   studies/on_accelerator.sh dry    FOLDER          here, on the CPU: all of these at smoke size
#
# From the environment: MODEL (smol), PART_MB (35), DEVICE (cuda, or cpu), PLAN (studies/decisive/plan.toml),
# PYTHON (python), JOBS (1; stages at once on one card). WORK keeps stages: bring it back after each slice, and
# give it to the next one. The page is written where WORK is read: toolshift reproduce decisive --only-page.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python}
MODEL=${MODEL:-smol}
PART_MB=${PART_MB:-35}
PLAN=${PLAN:-studies/decisive/plan.toml}
DEVICE=${DEVICE:-cuda}
JOBS=${JOBS:-1}

toolshift() { "$PYTHON" -m toolshift "$@"; }
fail() { echo "on_accelerator.sh: $*" >&2; exit 2; }

stage() { # the GGUF file in parts, with checksums
    mkdir -p "$1"
    "$PYTHON" - "$MODEL" "$1" <<'PY'
import sys, tempfile
from pathlib import Path
from shutil import copyfile
from toolshift.core.errors import UsageError
from toolshift.lm.bases import check_there, find_base_model, weights_file
try:
    base, folder = find_base_model(sys.argv[1]), Path(sys.argv[2])
    check_there(base)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        copyfile(weights_file(base, Path(scratch)), folder / base.file)
except UsageError as fault:
    sys.exit(f"Error: {fault}")
PY
    (cd "$1" && for file in *.gguf; do
        sha256sum "$file" > "$file.sha256"
        split -b "${PART_MB}M" -d -a 3 "$file" "$file.part"
        rm "$file"
        sha256sum "$file".part* > parts.sha256
    done)
    echo "staged in $1: $(ls "$1"/*.part* | wc -l) parts of at most $PART_MB MB"
}

join() { # parts to one file; what is whole already stays
    local sum file
    for sum in "$1"/*.gguf.sha256; do
        [ -e "$sum" ] || fail "$1 holds no staged weights: run stage first"
        file=${sum%.sha256}
        if [ ! -e "$file" ]; then
            (cd "$1" && sha256sum --quiet -c parts.sha256) || fail "a part in $1 is damaged or missing"
            cat "$file".part* > "$file.joining"
            mv "$file.joining" "$file"
        fi
        (cd "$1" && sha256sum --quiet -c "$(basename "$sum")") || fail "$file is not what was staged"
    done
}

run_plan() { # FOLDER WORK and options of reproduce
    local folder=$1 work=$2
    shift 2
    local model=()
    [ "$MODEL" = smol ] || model=(--model "$MODEL")
    TOOLSHIFT_WHEELS=$folder toolshift reproduce decisive --plan "$PLAN" --work "$work" --no-page \
        --device "$DEVICE" "${model[@]}" "$@"
}

time_one() { # the first stage alone: its fit and its measurement
    join "$1"
    local begun=$SECONDS
    run_plan "$1" "$2" --minutes 0.0001
    echo "one fit and one measurement: $((SECONDS - begun)) s on $DEVICE"
    "$PYTHON" - "$2" <<'PY'
import json, sys
from pathlib import Path
for file in sorted(Path(sys.argv[1]).glob("*/model/training.json")):
    told = json.loads(file.read_text())
    print(f"{file.parent.parent.name}: fit {told['wall_seconds']} s, {told['steps']} steps, "
          f"{told['tokens']} tokens, on {told['hardware']['device']}")
PY
}

slice() { # JOBS copies of one command: each takes the next stage that no other is at
    join "$1"
    local children=() failed=0
    for _ in $(seq "$JOBS"); do
        run_plan "$1" "$2" --minutes "$3" &
        children+=($!)
    done
    for child in "${children[@]}"; do wait "$child" || failed=$?; done
    return "$failed"
}

dry() { # the same commands at smoke size, on the CPU
    local folder=$1 plan=$PLAN
    DEVICE=cpu PLAN=$folder/plan.toml
    mkdir -p "$folder"
    "$PYTHON" - "$folder" "$plan" <<'PY'
import hashlib, json, sys, tomllib
from pathlib import Path
folder = Path(sys.argv[1])
plan = tomllib.loads(Path(sys.argv[2]).read_text())
text = f'''name = "decisive"
question = "Do the commands run?"
preset = "smoke"
pool = "dev"
kinds = ["listing"]
tasks = 1
trajectories = 12
max_repeats = {plan["max_repeats"]}
held_out = {json.dumps(plan["held_out"])}
[[endpoints]]
name = "tier 2"
measure = "drop"
shifts = ["redirect:2", "csv_results:2"]
[[arms]]
name = "static"
summary = "clean"
seeds = 1
[[arms]]
name = "dagger"
summary = "rounds"
method = "dagger"
rounds = 2
seeds = 1
doses = {{ symbols = 6 }}
[[contrasts]]
first = "static"
second = "dagger"
[[blocks]]
arms = ["static", "dagger"]
seeds = [0]
'''
(folder / "plan.toml").write_text(text)
(folder / "plan.sha256").write_text(f"{hashlib.sha256(text.encode()).hexdigest()}  plan.toml\n")
PY
    stage "$folder/weights"
    time_one "$folder/weights" "$folder/work"
    slice "$folder/weights" "$folder/work" 0.0001 # the second stage
    slice "$folder/weights" "$folder/work" 10     # nothing is left
}

[ $# -ge 2 ] || { sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }
case $1 in
    stage) stage "$2" ;;
    join) join "$2" ;;
    time) time_one "$2" "${3:?give the folder of stages}" ;;
    slice) slice "$2" "${3:?give the folder of stages}" "${4:?give minutes}" ;;
    dry) dry "$2" ;;
    *) fail "unknown command $1: stage, join, time, slice or dry" ;;
esac
