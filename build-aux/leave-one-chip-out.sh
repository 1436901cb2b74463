#!/bin/bash
# What a chip that nobody calibrated is predicted like: of one chip after the other the file keeps its datasheet, the part of the
# peak that large matmuls reach and the launch floor; all else that is calibrated is the mean of the other chips', as the defaults are
# of all of them (src/topology/chip-rows.c), or absent; its power limit slows it down as those of the other chips do. Prints kernels' and
# steps' errors. Environment: PODSIM.
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

# measured CHIP ELEMENT: the value, unless it was taken from other chips
measured ()
{
  sed -n "/^ *<$2 value=/{N;/not measured on this chip/d;s/^ *<$2 value=\"\([0-9.]*\).*/\1/p;}" "topologies/chips/$1.xml"
}

# means ELEMENT=UNIT... -- CHIP...: lines of a chip file with the chips' mean values
means ()
{
  local elements=() element chip
  while [ "$1" != -- ]; do elements+=("$1"); shift; done
  shift
  for element in "${elements[@]}"; do
    for chip; do measured "$chip" "${element%%=*}"; done |
      awk -v name="${element%%=*}" -v unit="${element#*=}" '{ sum += $1 } END { if (NR > 0) printf "  <%s value=\"%.4g%s\" source=\"as other chips\"/>\n", name, sum / NR, unit }'
  done
}

# core_rate CHIP OTHERS...: a line with the mean bytes that a core of the others loads while it does a FLOP, at CHIP's peak
core_rate ()
{
  local chip
  for chip; do echo "$(value "$chip" core_bandwidth) $(value "$chip" peak_bf16) $(value "$chip" cores_per_chip)"; done |
    awk 'NR == 1 { per_core = $2 / $3; if (NF < 3) per_core = $1 / $2; next } { sum += $1 / ($2 / $3) } END { printf "  <core_bandwidth value=\"%.4g GB/s\" source=\"as other chips\"/>\n", sum / (NR - 1) * per_core }'
}

# attention CHIP OTHERS...: lines with what attention reaches but for the softmax, and how much of the softmax is not hidden by matrix units
# that run beside it, as on the others: fill_attention of src/topology/chip.c
attention ()
{
  local chip
  for chip; do
    echo "$(value "$chip" peak_bf16) $(value "$chip" cores_per_chip) $(value "$chip" clock) $(value "$chip" attention_efficiency) $(value "$chip" attention_softmax_dims)"
  done | awk '
    { flops = $1 * 1e3 / $2 / $3; dims = flops / 64 }
    NR == 1 { own = dims; is_beside = flops > 3000; next }
    { reached += $4 * (1 + $5 / 128) }
    flops > 3000 { exposed += $5 / dims; n++ }
    END {
      own *= is_beside ? exposed / n : 1
      printf "  <attention_efficiency value=\"%.4g\" source=\"as other chips\"/>\n", reached / (NR - 1) / (1 + own / 128)
      printf "  <attention_softmax_dims value=\"%.4g\" source=\"as other chips\"/>\n", own
    }'
}

# strip CHIP RATIO OTHERS: of its file what is no datasheet
strip ()
{
  # shellcheck disable=SC2086 # the other chips, apart
  awk -v power="$(awk -v t="$(value "$1" tdp)" -v r="$2" 'BEGIN { printf "%.0f", t * r }')" \
    -v others="$(means 'attention_launch= us' 'cast_launch= us' 'attention_block= us' matmul_hbm_efficiency= \
      'tile_overhead= us' 'split_k_overhead= us' -- $3; core_rate "$1" $3; attention "$1" $3)" '
    /<[a-z0-9_]*_surface/ { skip = 1 }
    /<(attention_[a-z0-9_]*|cast_launch|matmul_hbm_efficiency|core_bandwidth|tile_overhead|split_k_overhead|unaligned_matmul|matmul_power|clock_spread|hbm_efficiency|network_efficiency|collective_launch) / { skip = 2 }
    !skip && /<\/chip>/ { print others; printf "  <matmul_power value=\"%s W\" source=\"as other chips\"/>\n", power }
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
  strip "$chip" "$ratio" "${others/$chip/}" >"$work/chips/$chip.xml"
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
