#!/bin/bash
# What `make bench-growth` prints: how instructions, processor time and memory of a step grow with its ranks, layers and microbatches when
# every rank is simulated. Instructions are callgrind's, so that they come out the same on a busy machine; of the largest job they take a
# quarter of an hour. GROWTH=N: up to so many ranks. Then the bytes that one more rank takes where the heap is at its highest: what is kept
# for it, and what is there while its operations are open.
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

# heap RANKS: of LLaMA-3-405B with 30 of its layers, the bytes that are kept and those of open operations, as massif finds them at the peak.
# What is allocated on the way from an event is of an open operation, but for the links that are told apart by then, which stay.
heap ()
{
  valgrind --tool=massif --massif-out-file="$scratch/massif" --threshold=0 --depth=24 --detailed-freq=1000 --peak-inaccuracy=0 "$BUILD/podsim" run --model llama3-405b --layers 30 \
    --embed-head-as-layers --zero 1 --seq-len 8192 --topology "h100:8x$(($1 / 8))" --layout "tp=8 pp=16 dp=$(($1 / 128))" --global-batch $(($1 / 8)) --fold off \
    >"$scratch/out" 2>"$scratch/log"
  awk '/^heap_tree=/ { is_peak = $0 == "heap_tree=peak"; if (is_peak) kept = open = 0 }
    is_peak && match($0, /^ *n[0-9]+: /) {
      depth = index($0, "n") - 1
      is_open[depth] = depth > 0 && is_open[depth - 1] || / (try_stream|complete|pod_(network|runner)_handle|pod_event_queue_[a-z]+) /
      stays[depth] = depth > 0 && stays[depth - 1] || / (add_bundle|split_off)[. ]/
      if ($1 == "n0:") { if (is_open[depth] && !stays[depth]) open += $2; else kept += $2 } }
    END { print kept, open }' "$scratch/massif"
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
if [ "$most" -ge 16384 ]; then
  read -r kept open <<<"$(heap 4096)"
  read -r more_kept more_open <<<"$(heap 16384)"
  printf '\n%s\n' "one rank more: $(((more_kept - kept) / 12288)) bytes kept, $(((more_open - open) / 12288)) of open operations at the peak"
fi
