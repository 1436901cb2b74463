#!/bin/bash
# What a chip that nobody calibrated is predicted like: of one chip after the other the file keeps its datasheet, the part of the
# peak that large matmuls reach and the launch floor; all else that is calibrated is the default, its power limit slows it down as
# those of the other chips do. Prints kernels' and steps' errors. Environment: PODSIM.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
PODSIM=$(realpath "$PODSIM")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

value ()
{
  sed -n "s/^ *<$2 value=\"\([0-9.]*\).*/\1/p" "topologies/chips/$1.xml"
}

# strip CHIP RATIO: of its file what is no datasheet
strip ()
{
  awk -v power="$(awk -v t="$(value "$1" tdp)" -v r="$2" 'BEGIN { printf "%.0f", t * r }')" '
    /<[a-z0-9_]*_surface/ { skip = 1 }
    /<(attention_[a-z0-9_]*|matmul_hbm_efficiency|core_bandwidth|tile_overhead|split_k_overhead|unaligned_matmul|matmul_power|clock_spread|hbm_efficiency|network_efficiency|collective_launch) / { skip = 2 }
    !skip && /<\/chip>/ { printf "  <matmul_power value=\"%s W\" source=\"as other chips\"/>\n", power }
    !skip { print }
    skip == 1 && /<\/[a-z0-9_]*_surface>/ { skip = 0 }
    skip == 2 && /\/>/ { skip = 0 }' "topologies/chips/$1.xml"
}

printf '%-8s%22s%22s%22s%22s\n' chip 'matmuls, median %' 'attention, median %' 'steps, mean %' 'calibrated, mean %'
for chip in a100 h100 b200; do
  others=a100\ h100\ b200
  ratio=$(for other in ${others/$chip/}; do echo "$(value "$other" matmul_power) $(value "$other" tdp)"; done | awk '{ sum += $1 / $2 } END { print sum / NR }')
  rm -rf "$work/chips"
  mkdir "$work/chips"
  strip "$chip" "$ratio" >"$work/chips/$chip.xml"
  matmul=- attention=-
  for kind in gemm attention; do
    table=workloads/measured/$kind-$chip.tsv.gz
    [ -f "$table" ] || continue
    PODSIM_PATH=$work/chips:$PWD "$PODSIM" validate kernels --table "$table" --chip "$chip" --json "$work/json" >/dev/null
    median=$(sed -n 's/^ *"median_error": \([0-9.e-]*\),*$/\1/p' "$work/json" | head -n 1 | awk '{ printf "%.1f", $1 * 100 }')
    [ $kind = gemm ] && matmul=$median || attention=$median
  done
  for path in "$work/chips:$PWD" "$PWD"; do
    PODSIM_PATH=$path "$PODSIM" validate training --chip "$chip" --json "$work/json" >/dev/null
    sed -n 's/^ *"mape": \([0-9.e-]*\),*$/\1/p' "$work/json" | head -n 1 | awk '{ printf "%.1f\n", $1 * 100 }'
  done >"$work/steps"
  printf '%-8s%22s%22s%22s%22s\n' "$chip" "$matmul" "$attention" "$(sed -n 1p "$work/steps")" "$(sed -n 2p "$work/steps")"
done
