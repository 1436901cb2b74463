#!/bin/bash
# Runs every published training step of workloads/measured and puts the errors between the marks of
# docs/validation.md and of README.md: part of make validate. Environment: PODSIM, the program.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
page=docs/validation.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$PODSIM" validate training --per-row "$work/rows" --plot "$work/plots" >"$work/training"
cp "$work/plots/training.png" docs/pictures/validate-training.png
build-aux/readme-steps.sh "$work/rows"
build-aux/leave-one-chip-out.sh >"$work/left-out"
"$PODSIM" validate memory >"$work/memory"
awk -v training="$work/training" -v memory="$work/memory" -v left_out="$work/left-out" '
  function insert (file, line) { print "```"; while ((getline line <file) > 0) print line; print "```" }
  /^<!-- training -->$/ { print; insert(training); skip = 1; next }
  /^<!-- left out -->$/ { print; insert(left_out); skip = 1; next }
  /^<!-- memory -->$/ { print; insert(memory); skip = 1; next }
  /^<!-- end -->$/ { skip = 0 }
  !skip' "$page" >"$work/page"
cat "$work/page" >"$page"
cat "$work/training" "$work/memory"
