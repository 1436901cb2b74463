#!/bin/bash
# Ring collectives against ASTRA-sim (tests/data/astra/rings.tsv; docs/model/astra.md): with its endpoint delay,
# local memory and rounding to whole nanoseconds every row comes out to the nanosecond, without the rounding
# within 0.4 %. Prints "ok NAME" or "not ok NAME: why". Environment: PODSIM, SRC.
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
PODSIM=${PODSIM:-$SRC/build/podsim}
export PODSIM

# The machine that a block of ASTRA-sim's topology stands for, as arguments, one a line.
machine ()
{
  local block=$1 dims=$2
  case $block in
    Ring*)
      local axes=${dims//[0-9]/}
      case ${#axes} in 0) axes=x ;; 1) axes=xy ;; *) axes=xyz ;; esac
      printf '%s\n' --topology "tpu-v5p:$dims,unchecked,wrap=$axes" \
        --set chip.ici_bandwidth=50GiB/s --set chip.ici_latency=500ns ;;
    Switch)
      # In and out of the switch: two links of 500 ns
      printf '%s\n' --topology "h100:$dims,unchecked" \
        --set chip.scale_up_bandwidth=50GiB/s --set chip.scale_up_latency=1us ;;
    FullyConnected)
      # A device's rate is that of its n-1 links together
      printf '%s\n' --topology "mi300x:$dims,unchecked" \
        --set "chip.scale_up_bandwidth=$((50 * (dims - 1)))GiB/s" --set chip.scale_up_latency=500ns ;;
  esac
}

# ns of all sizes by the law $1, with blanks between
times_ns ()
{
  local law=$1
  shift
  "$PODSIM" collective "$@" --fidelity ideal --steps "$law" --json - |
    awk '/"rows"/ { rows = 1 } rows && /^      "time_s"/ { gsub (/[^0-9.e+-]/, "", $NF); printf "%.3f ", $NF * 1e9 }'
}

# The sizes of one collective on one machine: $5 and $6 are lists with commas
judge ()
{
  local backend=$1 collective=$2 block=$3 dims=$4 sizes=$5 expected=$6
  local law=endpoint-delay=10ns,local-memory=1600GB/s arguments npus=$((${dims//x/*})) size bytes=""
  mapfile -t arguments < <(machine "$block" "$dims")
  [ "$block-$backend" != Switch-aware ] || law+=,store-and-forward
  for size in ${sizes//,/ }; do
    [ "$collective" != all_gather ] || size=$((size * npus))
    bytes+=,$size
  done
  arguments+=(--kind "$collective" --bytes "${bytes#,}")
  awk -v name="astra $backend $collective $block $dims" -v sizes="$sizes" -v expected="$expected" \
    -v exact="$(times_ns "$law,floor" "${arguments[@]}")" -v smooth="$(times_ns "$law" "${arguments[@]}")" 'BEGIN {
    n = split (sizes, size, ",")
    split (expected, wanted, ",")
    split (exact, whole, " ")
    split (smooth, part, " ")
    for (i = 1; i <= n; i++)
      if (whole[i] == "" || whole[i] - wanted[i] > 0.01 || wanted[i] - whole[i] > 0.01)
        print "not ok " name " " size[i] ": got " whole[i] " ns, ASTRA-sim has " wanted[i]
      else if (part[i] / wanted[i] - 1 > 0.004 || part[i] / wanted[i] - 1 < -0.004)
        print "not ok " name " " size[i] ": without rounding " part[i] " ns, ASTRA-sim has " wanted[i]
      else
        print "ok " name " " size[i]
  }'
}

export -f machine times_ns judge
# shellcheck disable=SC2016 # the inner shell expands
awk -F '\t' '!/^#/ {
  key = $1 " " $2 " " $3 " " $4
  if (!(key in sizes)) order[++n] = key
  sizes[key] = sizes[key] "," $5
  times[key] = times[key] "," $6
}
END { for (i = 1; i <= n; i++) print order[i], substr (sizes[order[i]], 2), substr (times[order[i]], 2) }' \
  "$SRC/tests/data/astra/rings.tsv" |
  xargs -P "$(nproc)" -L 1 bash -c 'judge "$@"' judge | LC_ALL=C sort
