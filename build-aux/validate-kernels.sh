#!/bin/bash
# Judges the kernels against workloads/measured and puts the result between the marks of docs/model/kernels.md: make
# validate. With --check it only says whether the page is what it would be. Environment: PODSIM, the program.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
page=docs/model/kernels.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$PODSIM" validate kernels >"$work/measured"
awk -v measured="$work/measured" '
  function insert (file, line) { print "```"; while ((getline line <file) > 0) print line; print "```" }
  /^<!-- measured -->$/ { print; insert(measured); skip = 1; next }
  /^<!-- end -->$/ { skip = 0 }
  !skip' "$page" >"$work/page"
if [ "${1:-}" = --check ]; then
  cmp "$work/page" "$page"
else
  cat "$work/page" >"$page"
  cat "$work/measured"
fi
