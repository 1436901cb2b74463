#!/bin/bash
# What `make bench` prints: how fast podsim is on this machine, beside what others take (measured once, on two cores of Debian 12, with
# the sources named in docs/performance.md). Medians of several runs in processor time; a busy machine shows in them all the same.
#
#   BUILD=build build-aux/bench.sh
set -euo pipefail

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd)
bench=$BUILD/tests/bench
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "machine   $(awk -F ': *' '/model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
echo "caches    L1d $(getconf LEVEL1_DCACHE_SIZE), L2 $(getconf LEVEL2_CACHE_SIZE), L3 $(getconf LEVEL3_CACHE_SIZE) bytes"
echo "compiler  $(cut -d ' ' -f 1 <"$BUILD/flags") $("$(cut -d ' ' -f 1 <"$BUILD/flags")" -dumpfullversion)"
echo

# The middle one of the lines of numbers
median ()
{
  sort -g | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }'
}

# $1: what, $2: measured, $3: unit, $4: what another takes, in the same unit, $5: who
row ()
{
  awk -v what="$1" -v got="$2" -v unit="$3" -v anchor="$4" -v who="$5" 'BEGIN {
    ratio = anchor == "-" ? "" : sprintf ("%.1f times", anchor / got)
    printf "%-58s %10.3g %-9s %10s %-12s %s\n", what, got, unit, anchor, ratio, who }'
}
printf '%-58s %10s %-9s %10s %-12s %s\n' what podsim unit other 'as fast' by

for i in 1 2 3; do
  "$bench/bench-queue" 1000000 >"$scratch/queue.$i"
done
for n in 100 1000 10000 100000 1000000; do
  got=$(awk -v n=$n '$1 == n { print $2 }' "$scratch"/queue.* | median)
  case $n in
    1000) row "phold, $n pending" "$got" ns/event 400 'ROSS, 1024' ;;
    1000000) row "phold, $n pending" "$got" ns/event 2564 'ROSS' ;;
    *) row "phold, $n pending" "$got" ns/event - '' ;;
  esac
done

# $1: what, $2: seconds of another, $3: who, then the words of podsim run
job ()
{
  local what=$1 anchor=$2 who=$3 i
  shift 3
  for i in 1 2 3 4 5; do
    { TIMEFORMAT='%U %S'; time "$BUILD/podsim" run "$@" >"$scratch/out" 2>"$scratch/err"; } 2>&1 | awk '{ print $1 + $2 }'
  done | median >"$scratch/s"
  row "$what" "$(cat "$scratch/s")" s "$anchor" "$who"
}
gpt=(--topology h100:8x128 --model gpt3-175b --layers 8 --layout 'tp=8 pp=2 dp=64' --seq-len 2048 --global-batch 1024)
large=(--model llama3-405b --embed-head-as-layers --zero 1 --seq-len 8192)
job 'GPT step, 8 layers, 16 microbatches, 1,024 GPUs' 420 'ASTRA-sim' "${gpt[@]}"
job 'the same, every rank' 420 'ASTRA-sim' "${gpt[@]}" --fold off
job 'LLaMA-3-70B, 512 GPUs, 32 microbatches' - '' --topology h100:8x64 --model llama3-70b --layout 'tp=8 pp=4 dp=16' --seq-len 8192 --global-batch 512
job 'LLaMA-3-405B, 16,384 GPUs, 16 microbatches' - '' "${large[@]}" --topology h100:8x2048 --layout 'tp=8 pp=16 dp=128' --global-batch 2048
job 'LLaMA-3-405B, 131,072 GPUs, 16 microbatches' - '' "${large[@]}" --topology h100:8x16384 --layout 'tp=8 pp=16 dp=1024' --global-batch 16384

"$bench/bench-layouts" 200 >"$scratch/layouts"
got=$(awk '/layouts,/ { for (i = 1; i <= NF; i++) if ($i == "layout:") print 1000 / $(i + 1) }' "$scratch/layouts")
row 'a layout of LLaMA-3-70B on 512 GPUs, one after the other' "$got" ms - ''
row 'bounds of its time and memory' "$(awk '/^bounds:/ { print 1000 / $2 }' "$scratch/layouts")" ms 1.87 'Calculon, a closed form'
echo
"$bench/bench-collective"
"$bench/bench-network"
"$bench/bench-packet"
