#!/bin/bash
# Searches the space that the authors of published layouts had, and puts their layout beside the best one found between the marks of
# docs/guide/search.md: make published-layouts. Environment: PODSIM, the program.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
page=docs/guide/search.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The value of a key of a result: results ID KEY
value () { sed -n "s/^ *\"$2\": \"*\([^\",]*\)\"*,*$/\1/p" "$1" | head -n 1; }

{
  echo '| job | published | time | best found | time | published / best |'
  echo '|---|---|---|---|---|---|'
  grep -v '^#' workloads/published-layouts.tsv | tail -n +2 | while IFS=$'\t' read -r id job options space published; do
    eval "$PODSIM run $options $published --json $work/run.json" >/dev/null
    eval "$PODSIM search $options $space --top 1 --json $work/search.json" >/dev/null
    awk -v id="$id" -v job="$job" -v published="$published" -v ours="$(value "$work/run.json" time_s)" \
        -v best="$(value "$work/search.json" time_s)" -v found="$(sed -n 's/^ *"command": "\(.*\)",*$/\1/p' "$work/search.json" | head -n 1)" '
      BEGIN {
        gsub(/\\"/, "", found); gsub(/\047/, "", published)
        gsub(/"/, "", found); sub(/--layout /, "", found); sub(/--layout /, "", published)
        printf "| %s (%s) | `%s` | %.2f s | `%s` | %.2f s | %.3f |\n", job, id, published, ours, found, best, ours / best
      }'
  done
} >"$work/table"
awk -v table="$work/table" '
  /^<!-- published layouts -->$/ { print; while ((getline line <table) > 0) print line; skip = 1; next }
  /^<!-- end -->$/ { skip = 0 }
  !skip' "$page" >"$work/page"
cat "$work/page" >"$page"
cat "$work/table"
