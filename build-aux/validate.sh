#!/bin/bash
# Judges the cost tables against workloads/measured and puts the results between the marks of
# docs/model/libraries.md: make validate. With --check it only says whether the page is what it would be.
# Environment: PODSIM, the program.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
page=docs/model/libraries.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$PODSIM" validate collectives >"$work/measured"
if [ "${1:-}" = --check ]; then
  sed -n '/^<!-- leave-one-out -->$/,/^<!-- end -->$/p' "$page" | sed '1,2d;$d' | sed '$d' >"$work/left"
else
  "$PODSIM" validate collectives --leave-one-out topologies/libraries/templates/nccl.xml >"$work/left"
fi

awk -v measured="$work/measured" -v left="$work/left" '
  function insert (file, line) { print "```"; while ((getline line <file) > 0) print line; print "```" }
  /^<!-- measured -->$/ { print; insert(measured); skip = 1; next }
  /^<!-- leave-one-out -->$/ { print; insert(left); skip = 1; next }
  /^<!-- end -->$/ { skip = 0 }
  !skip' "$page" >"$work/page"
if [ "${1:-}" = --check ]; then
  cmp "$work/page" "$page"
else
  cat "$work/page" >"$page"
  cat "$work/measured" "$work/left"
fi
