#!/bin/bash
# What `make bench-growth` prints: how instructions, processor time and memory of a step grow with its ranks, layers and microbatches when
# every rank is simulated. Instructions are callgrind's, so that they come out the same on a busy machine; of the largest job they take a
# quarter of an hour. GROWTH=N: up to so many ranks.
#
#   BUILD=build build-aux/growth.sh
set -euo pipefail

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd)
most=${GROWTH:-131072}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# $1: what, $2: how many of it, then the words of podsim run
row ()
{
  local what=$1 n=$2 instructions s kib='-'
  shift 2
  { TIMEFORMAT='%U %S'; time "$BUILD/podsim" run "$@" >"$scratch/out" 2>"$scratch/err"; } 2>&1 | awk '{ print $1 + $2 }' >"$scratch/s"
  s=$(cat "$scratch/s")
  if [ -x /usr/bin/time ]; then
    kib=$(/usr/bin/time -f %M "$BUILD/podsim" run "$@" 2>&1 >"$scratch/out" | tail -n 1)
  fi
  valgrind --tool=callgrind --callgrind-out-file="$scratch/callgrind" "$BUILD/podsim" run "$@" >"$scratch/out" 2>"$scratch/log"
  instructions=$(awk '/Collected/ { print $NF }' "$scratch/log")
  awk -v what="$what" -v n="$n" -v i="$instructions" -v s="$s" -v kib="$kib" 'BEGIN {
    printf "%-14s %8d %16.0f %12.0f %9.2f %10s\n", what, n, i, i / n, s, kib }'
}

printf '%-14s %8s %16s %12s %9s %10s\n' '' n instructions 'for one' s KiB
common=(--model llama3-8b --seq-len 2048 --fold off)
for n in 128 256 512 1024 2048 4096 8192 16384 131072; do
  if [ "$n" -le "$most" ]; then
    row ranks "$n" "${common[@]}" --layers 4 --topology "h100:8x$((n / 8))" --layout "tp=8 pp=4 dp=$((n / 32))" --global-batch $((n / 8))
  fi
done
for n in 8 16 32 64; do
  row layers "$n" "${common[@]}" --layers "$n" --topology h100:8x8 --layout 'tp=8 pp=4 dp=2' --global-batch 16
done
# recorded, for what nobody records is simulated once where it is steady
for n in 8 16 32 64; do
  row microbatches "$n" "${common[@]}" --layers 8 --topology h100:8x8 --layout 'tp=8 pp=4 dp=2' --global-batch $((2 * n)) --trace "$scratch/trace.json" --trace-ranks 0
done
