#!/bin/bash
# Fits what a step loses (docs/model/step-losses.md) to the published steps: make calibrate-training. Environment: PODSIM.
#
# Fitted are the power of matmuls of each chip, the passes of each framework, two attention kernels' efficiencies and the
# rate of ZeRO-3's gathers. Rows: half of the judged ones (column half), without experts, whose time is launches and
# exchanges, and without vtrain-multi, which has no part in any fit. Each round runs all rows, then moves one parameter
# at a time by factors of 1.2 to 1.005, as long as that lowers
#   sum over rows of w |ln (predicted / measured)| + 0.3 x sum over parameters of |ln (value / prior)|,   w = min (1, 30 / rows of the source)
# where predicted follows from the parts that the round's run printed. No random numbers. Priors: 1.15 times tdp, 1.5
# passes, the value that is there.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
rounds=${ROUNDS:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# value FILE ELEMENT: its number, without unit
value ()
{
  sed -n "s/^ *<$2 value=\"\([0-9.]*\).*/\1/p" "$1"
}

# put FILE ELEMENT VALUE
put ()
{
  sed -i "s|\(<$2 value=\"\)[^\"]*|\1$3|" "$1"
}

# watts CHIP OTHER WATTS: of OTHER's matrix units at full clock where CHIP, of the same silicon, takes WATTS: as cores x V^2 f, and the
# voltage rises with the clock
watts ()
{
  awk -v n="$(value "topologies/chips/$1.xml" cores_per_chip)" -v f="$(value "topologies/chips/$1.xml" clock)" \
    -v N="$(value "topologies/chips/$2.xml" cores_per_chip)" -v F="$(value "topologies/chips/$2.xml" clock)" -v w="$3" \
    'BEGIN { printf "%.0f", w * N / n * (F / f) ^ 3 }'
}

# name, file, element: the parameters; a chip's power stands for its likes
chips='A:a100,a100-40 H:h100,h200,h800 B:b200,gb200,b300,gb300'
for ((round = 1; round <= rounds; round++)); do
  : >"$work/parameters"
  for chip in $chips; do
    file=topologies/chips/${chip#*:}
    file=${file%%,*}.xml
    power=$(value "$file" matmul_power) tdp=$(value "$file" tdp)
    awk -v name="c_${chip%%:*}" -v p="$power" -v t="$tdp" 'BEGIN { print name, p / t, 1.15, 1, 1.4 }' >>"$work/parameters"
  done
  for file in workloads/frameworks/*.xml; do
    [ "$(basename "$file" .xml)" != megatron-deepspeed ] || continue # has megatron-2021's
    passes=$(value "$file" elementwise_passes)
    [ -z "$passes" ] || echo "v_$(basename "$file" .xml) $passes 1.5 1 4" >>"$work/parameters"
  done
  for name in g_h100:attention_triton g_a100:attention_fa1; do
    file=topologies/chips/${name%%:*}.xml
    file=${file/g_/}
    e=$(value "$file" "${name#*:}")
    echo "${name%%:*} $e $e 0.1 0.7" >>"$work/parameters"
  done
  r=$(value workloads/frameworks/deepspeed-2021.xml fsdp_rate)
  echo "f_deepspeed-2021 $r $r 0.05 1" >>"$work/parameters"

  "$PODSIM" validate training --per-row "$work/rows" >"$work/text"
  awk -F '\t' '
    FILENAME == ARGV[1] { split ($0, part, " "); name[++n] = part[1]; now[n] = was[n] = part[2]; prior[n] = part[3]; low[n] = part[4]; high[n] = part[5]; at[part[1]] = n; next }
    FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    function cell (title) { return $column[title] == "NA" ? 0 : $column[title] + 0 }
    $column["counted"] != "yes" || $column["half"] != "fitted" || $column["source"] == "vtrain-multi" || $column["exposed_ep_s"] > 0 { next }
    {
      r = ++rows
      source[r] = $column["source"]; of_source[source[r]]++
      chip = $column["topology"]; sub (/:.*/, "", chip)
      framework = $column["options"]; if (!sub (/.*--framework /, "", framework)) framework = ""
      gsub (/^\047/, "", framework); sub (/\047.*/, "", framework)
      key = chip == "a100" || chip == "a100-40" ? "A" : chip ~ /^h[12]00$/ ? "H" : chip ~ /^g?b[23]00$/ ? "B" : chip
      c[r] = at["c_" key]; v[r] = at["v_" framework]; f[r] = at["f_" framework]
      g[r] = framework == "llm-foundry" && chip == "h100" ? at["g_h100"] : framework == "internevo" ? at["g_a100"] : 0
      measured[r] = cell("measured_s")
      matmul[r] = cell("kernels_matmul_s"); attention[r] = cell("kernels_attention_s"); passes[r] = cell("kernels_elementwise_s")
      rest[r] = cell("kernels_optimizer_s"); fsdp[r] = cell("exposed_fsdp_s")
      whole = matmul[r] + attention[r] + passes[r] + rest[r]
      stretch[r] = 1 + cell("bubble_s") / whole
      fixed[r] = cell("predicted_s") - whole * stretch[r] - fsdp[r]
    }
    function error (r,  clock, time)
    {
      clock = c[r] ? now[c[r]] / was[c[r]] : 1
      time = (matmul[r] * clock + attention[r] * clock * (g[r] ? was[g[r]] / now[g[r]] : 1) + passes[r] * (v[r] ? now[v[r]] / was[v[r]] : 1) + rest[r]) * stretch[r]
      time += fixed[r] + fsdp[r] * (f[r] ? was[f[r]] / now[f[r]] : 1)
      time = log (time / measured[r])
      return (time < 0 ? -time : time) * (of_source[source[r]] > 15 ? 15 / of_source[source[r]] : 1)
    }
    function loss (p,  r, sum)
    {
      sum = log (now[p] / prior[p])
      sum = 0.3 * (sum < 0 ? -sum : sum)
      for (r = 1; r <= rows; r++) if (c[r] == p || v[r] == p || g[r] == p || f[r] == p) sum += error(r)
      return sum
    }
    END {
      n_steps = split ("1.2 1.08 1.03 1.01 1.005", step, " ")
      for (s = 1; s <= n_steps; s++)
        for (turn = 0; turn < 30; turn++) {
          moved = 0
          for (p = 1; p <= n; p++)
            for (way = -1; way <= 1; way += 2) {
              old = now[p]; before = loss(p)
              now[p] = way > 0 ? old * step[s] : old / step[s]
              if (now[p] >= low[p] && now[p] <= high[p] && loss(p) < before - 1e-9) moved = 1; else now[p] = old
            }
          if (!moved) break
        }
      for (p = 1; p <= n; p++) printf "%s %.3g\n", name[p], now[p]
    }' "$work/parameters" "$work/rows" >"$work/fitted"

  while read -r name number; do
    case $name in
      c_*)
        for chip in $chips; do
          [ "${chip%%:*}" = "${name#c_}" ] || continue
          likes=${chip#*:}
          first=${likes%%,*}
          power=$(awk -v r="$number" -v t="$(value "topologies/chips/$first.xml" tdp)" 'BEGIN { print r * t }')
          for one in ${likes//,/ }; do
            put "topologies/chips/$one.xml" matmul_power "$(watts "$first" "$one" "$power") W"
          done
        done ;;
      v_*) put "workloads/frameworks/${name#v_}.xml" elementwise_passes "$number" ;;
      f_*) put "workloads/frameworks/${name#f_}.xml" fsdp_rate "$number" ;;
      g_h100) for chip in h100 h200 h800; do put topologies/chips/$chip.xml attention_triton "$number"; done ;;
      g_a100) for chip in a100 a100-40; do put topologies/chips/$chip.xml attention_fa1 "$number"; done ;;
    esac
    echo "$name $number"
  done <"$work/fitted"
  sed -n '/^Groups/,/^all/p' "$work/text"
done
