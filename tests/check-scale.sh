#!/bin/bash
# Large steps whose traces must open: LLaMA-3-405B on 16,384 GPUs (How to Scale Your Model, 2026, ch. 12, G180), DeepSeek-V3 on 2,048
# (arXiv 2412.19437, 3.1 and 4.2: pp 16, ep 64, ZeRO-1, DualPipe, fp8; 15,360 sequences of 4,096), and 1,000 layers in a pipeline of 64
# microbatches. And the slots of a pipeline, read off its trace. Prints "ok NAME" or "not ok NAME: why". After a build also by hand:
# BUILD=build tests/check-scale.sh
set -u

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd) || exit 1
podsim=$BUILD/podsim
trace_check=$BUILD/tests/tools/trace-check
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
status=0

# $1: name, $2: what is wrong, empty when nothing is
verdict ()
{
  if [ -z "$2" ]; then
    echo "ok $1"
  else
    echo "not ok $1: $2"
    status=1
  fi
}

# $1: name, $2: wanted exit status; podsim run with what follows, and its trace
traced ()
{
  local name=$1 wanted=$2 result=0 why=
  shift 2
  "$podsim" run "$@" --trace "$folder/$name.json" >"$folder/out" 2>"$folder/err" || result=$?
  [ "$result" -eq "$wanted" ] || why="exit status $result instead of $wanted: $(head -n 1 "$folder/err")"
  verdict "$name/exit" "$why"
  "$trace_check" "$folder/$name.json" || status=1
}

traced llama3-405b 0 --topology h100:8x2048 --model llama3-405b --layout 'tp=8 pp=16 dp=128' --embed-head-as-layers --zero 1 --seq-len 8192 \
  --global-batch 2048 --trace-ranks 0,16383

traced deepseek-v3 0 --topology h800:8x256 --model deepseek-v3 --layout 'dp=128 pp=16 ep=64' --stage-layers balanced --zero 1 --seq-len 4096 \
  --global-batch 15360 --schedule dualpipe --dtype fp8 --recompute full --dispatch-dtype fp8 --route-nodes 4 --trace-ranks 0,1024

traced layers-1000 0 --topology h100:8x32 --model llama3-8b --layers 1000 --layout 'tp=8 pp=8 dp=4' --recompute full --seq-len 4096 \
  --global-batch 256 --trace-ranks 0,255

# Book problem G175: two stages, two microbatches, 1 ms forward and 2 ms backward, all forwards first. Stage 1 is idle in slot 0 and in
# the last two, stage 0 in slots 2 to 4.
traced slots 0 --fidelity book --model mlp-block --layers 2 --hidden 1024 --ffn 4096 --topology tpu-v5p:2x1x1 --layout pp=2 --seq-len 1024 \
  --global-batch 2 --schedule gpipe --set chip.peak_bf16=17179869184000FLOP/s --set chip.ici_bandwidth=1e20B/s --set chip.ici_latency=0s

# busy PROCESS CATEGORY BEGIN END NAME: where kernels of this category begin and end, in microseconds
busy ()
{
  local got
  got=$(sed -nE "s/^\{\"ph\":\"X\",\"pid\":$1,.*\"ts\":([0-9]+)\.[0-9]+,\"dur\":([0-9]+)\.[0-9]+,\"cat\":\"$2\".*/\1 \2/p" "$folder/slots.json" \
    | awk 'NR == 1 || $1 < least { least = $1 } $1 + $2 > most { most = $1 + $2 } { sum += $2 } END { print least, most, sum }')
  [ "$got" = "$3" ] && got= || got="begins, ends and lasts '$got' instead of '$3'"
  verdict "slots/$4" "$got"
}
busy 1 forward '0 2000 2000' 'stage 0 forward, then idle from slot 2'
busy 1 backward '5000 9000 4000' 'stage 0 backward from slot 5'
busy 2 forward '1000 3000 2000' 'stage 1 idle in slot 0'
busy 2 backward '3000 7000 4000' 'stage 1 idle in the last two slots'

exit "$status"
