#!/bin/bash
# Ring collectives against ASTRA-sim, row by row (tests/tools/astra-check.c; docs/model/astra.md); two of the rows through
# the program, for its options. Prints "ok NAME" or "not ok NAME: why". Environment: PODSIM, SRC, BUILD.
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
PODSIM=${PODSIM:-$BUILD/podsim}
rows=$SRC/tests/data/astra/rings.tsv

if ! [ -x "$BUILD/tests/tools/astra-check" ]; then
  echo 'not ok astra-check: was not built'
  exit
fi
"$BUILD/tests/tools/astra-check" "$rows"

# judge NAME ROW ARGUMENT...: the ns in the last column of the row that begins so
judge ()
{
  local name=$1 row=$2 wanted got
  shift 2
  wanted=$(awk -F '\t' -v row="$row" '$1 " " $2 " " $3 " " $4 " " $5 == row { print $6 }' "$rows")
  got=$("$PODSIM" collective "$@" --fidelity ideal --json - |
    awk '/"rows"/ { rows = 1 } rows && /^      "time_s"/ { gsub (/[^0-9.e+-]/, "", $NF); printf "%.0f", $NF * 1e9 }')
  if [ -n "$wanted" ] && [ "$got" = "$wanted" ]; then
    echo "ok astra $name"
  else
    echo "not ok astra $name: got $got ns, ASTRA-sim has $wanted"
  fi
}

law=endpoint-delay=10ns,local-memory=1600GB/s,floor
judge '--steps on a ring' 'unaware all_reduce Ring 8 1048576' \
  --topology tpu-v5p:8,unchecked,wrap=x --set chip.ici_bandwidth=50GiB/s --set chip.ici_latency=500ns \
  --kind all_reduce --bytes 1048576 --steps "$law"
judge '--steps through a switch' 'aware all_reduce Switch 8 1048576' \
  --topology h100:8,unchecked --set chip.scale_up_bandwidth=50GiB/s --set chip.scale_up_latency=1us \
  --kind all_reduce --bytes 1048576 --steps "$law,store-and-forward"
