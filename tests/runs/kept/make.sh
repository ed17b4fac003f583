#!/usr/bin/env bash
# Makes kept.tar.xz with an older ToolShift: run folders, a gate's bundles, a sealed plan and locks.
#   tests/runs/kept/make.sh CHECKOUT PYTHON
# What is in the repository was made by commit 2303d6b4.
set -euo pipefail
checkout=$(realpath "$1"); python=$2
here=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
cd "$folder"
export PYTHONPATH=$checkout/src
toolshift() { "$python" -m toolshift "$@" >/dev/null || [ $? -le 1 ]; }

agents=(--agent always_refuses --agent oracle)
small=(--world retail --tasks 2)
toolshift run "${agents[@]}" --suite quick --world poi --tasks 1 --out quick_today
toolshift run "${agents[@]}" --suite quick@1 --world poi --tasks 1 --out quick_former
toolshift run "${agents[@]}" "${small[@]}" --shift semantic_rename --shift merged_tools+query_paraphrase \
  --shift tool_gone --shift redirect:2 --out today
toolshift run "${agents[@]}" "${small[@]}" --shift semantic_rename@1 \
  --shift merged_tools@1+query_paraphrase@1 --shift tool_gone@1 --shift redirect:2 --out former
for run in today former; do  # killed in the middle of a line
  cp -r "$run" "${run}_stopped"
  rm "${run}_stopped"/report.*
  head -c 9000 "$run/episodes.jsonl" >"${run}_stopped/episodes.jsonl"
  toolshift gate "$run" --baseline "$run" --agent always_refuses --baseline-agent oracle \
    --margin 5 --bundle "$run.zip" || true
done
toolshift gate --agent always_refuses --baseline today --baseline-agent oracle --margin 5 --seal sealed.json

cp "$checkout"/examples/own_tools/* .
toolshift run --agent oracle --world tasks.yaml --shift semantic_rename --shift redirect --out own
"$python" "$here/make_judged.py" "$checkout/tests"

echo '[{"type": "function", "function": {"name": "get_order", "description": "Looks an order up.",
 "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}}]' >tools.json
toolshift lock tools.json --out tools.lock
toolshift lock today --out run.lock

rm -f -- */.lock */report.html
tar --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cJf "$here/kept.tar.xz" -- \
  */ today.zip former.zip sealed.json tools.json tools.lock run.lock
rm -r "$folder"
