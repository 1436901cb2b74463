#!/bin/bash
# Published steps beside predicted ones, between the marks of README.md: part of make validate.
# $1: what podsim validate training --per-row wrote. Environment: PODSIM.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The rows, each with what to call it
cat >"$work/wanted" <<'END'
SC01	Megatron-LM 2021, 1.7 B, weak scaling
SC05	Megatron-LM 2021, 39 B, weak scaling
SC07	Megatron-LM 2021, 146 B, weak scaling
SC09	Megatron-LM 2021, 530 B, weak scaling
RA4s	Megatron-LM 2022, 1 T, selective recomputation
DG137	LLaMA-3.1 405B, NeMo
MB269	LLaMA-3.1 405B, Megatron-Bridge, fp8
MB268	LLaMA-3 8B, Megatron-Bridge, fp8
TV5P_11	MaxText 512 B
TR01	GPT-3 175B, MaxText, one logged step
END

# H800-hours for 10^12 tokens: arXiv 2412.19437, 1: 180 K; scales of 1 x 128 and 128 x 128 (3.3), one module of multi-token prediction (4.2)
"$PODSIM" run --framework megatron --set framework.launch=0s --topology h800:8x256 --model deepseek-v3 \
  --layout 'pp=16 dp=128 ep=64' --schedule dualpipe --stage-layers balanced --mtp 1 --dtype fp8 --scaling block \
  --dispatch-dtype fp8 --route-nodes 4 --recompute selective --zero 1 --global-batch 15360 --micro-batch 1 --seq-len 4096 --tokens 1e12 \
  --json "$work/deepseek" >/dev/null || [ $? -eq 3 ] # its memory is not the question here
# arXiv 2407.21783, table 4: 400 TFLOP/s a GPU; virtual stages are not stated
"$PODSIM" run --framework megatron --grad-dtype bf16 --reduce-dtype bf16 --overlap-dp --topology h100:8x2048 --model llama3-405b \
  --layout 'tp=8 pp=16 vpp=8 dp=128' --embed-head-as-layers --zero 1 --global-batch 2048 --micro-batch 1 --seq-len 8192 \
  --json "$work/llama" >/dev/null || [ $? -eq 3 ]
rate=$(sed -n 's/^ *"flops_per_s_per_chip": \([0-9.]*\),*$/\1/p' "$work/llama")
hours=$(sed -n 's/^ *"chip_hours": \([0-9.]*\),*$/\1/p' "$work/deepseek")

awk -F '\t' -v hours="$hours" -v rate="$rate" '
  FILENAME == ARGV[1] { order[++n] = $1; title[$1] = $2; next }
  FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  $1 in title { machine[$1] = $at["topology"]; measured[$1] = $at["measured_s"]; predicted[$1] = $at["predicted_s"] }
  function off (p, m) { return sprintf ("%+.1f %%", (p / m - 1) * 100) }
  END {
    print "| | machine | published | predicted | off by |\n|---|---|---|---|---|"
    for (i = 1; i <= n; i++) {
      id = order[i]; sub (/,.*/, "", machine[id])
      printf "| %s (%s) | %s | %.3g s | %.3g s | %s |\n", title[id], id, machine[id], measured[id], predicted[id], off(predicted[id], measured[id])
    }
    printf "| LLaMA-3 405B, Meta: TFLOP/s a GPU | h100:8x2048 | 400 | %.0f | %s |\n", rate / 1e12, off(rate / 1e12, 400)
    printf "| DeepSeek-V3, H800-hours for 10^12 tokens | h800:8x256 | 180,000 | %d,%03d | %s |\n", hours / 1000, hours % 1000, off(hours, 180000)
  }' "$work/wanted" "$1" >"$work/table"
awk -v table="$work/table" '
  /^<!-- steps -->$/ { print; while ((getline line <table) > 0) print line; skip = 1; next }
  /^<!-- end -->$/ { skip = 0 }
  !skip' README.md >"$work/readme"
cat "$work/readme" >README.md
