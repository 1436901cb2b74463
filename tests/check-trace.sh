#!/bin/bash
# Writes traces with podsim run and judges them: strict JSON, lanes, flows, names, sizes
# (tests/support/trace-rules.c).
# Prints "ok NAME" or "not ok NAME: why". After a build also by hand: BUILD=build tests/check-trace.sh
set -u

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd) || exit 1
podsim=$BUILD/podsim
trace_check=$BUILD/tests/tools/trace-check
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
status=0

if [ ! -x "$trace_check" ]; then
  echo 'not ok trace-check: was not built'
  exit 1
fi

# Writes the trace $1 in the folder: podsim run with what follows. A step that does not fit in memory
# (exit 3) has a trace all the same.
write_trace ()
{
  local name=$1 result=0
  shift
  "$podsim" run "$@" --trace "$folder/$name" >"$folder/out" 2>"$folder/err" || result=$?
  if [ -s "$folder/$name" ] && { [ "$result" -eq 0 ] || [ "$result" -eq 3 ]; }; then
    return 0
  fi
  echo "not ok $name/written: exit status $result: $(head -n 1 "$folder/err")"
  status=1
  return 1
}

judge ()
{
  "$trace_check" "$@" || status=1
}

# $1: trace, $2: what must stand in it, $3: why
must_have ()
{
  if grep -qF -- "$2" "$folder/$1"; then
    echo "ok $1/has $3"
  else
    echo "not ok $1/has $3: $2 is nowhere"
    status=1
  fi
}

torus=(--topology tpu-v5p:4x4x4 --model llama3-8b --seq-len 4096 --global-batch 64 --layout "fsdp=16 tp=4")
pipeline=(--topology h100:8x4 --model llama3-8b --seq-len 4096 --global-batch 32 --layout "dp=2 tp=8 pp=2")

if write_trace torus.json "${torus[@]}"; then
  judge "$folder/torus.json"
  must_have torus.json '"cat":"forward"' 'forward ops'
  must_have torus.json '"cat":"backward"' 'backward ops'
  must_have torus.json '"cat":"comm"' collectives
  must_have torus.json '"ph":"C"' counters
  # A second opinion on the JSON, where there is one
  if command -v python3 >/dev/null; then
    if python3 -m json.tool "$folder/torus.json" /dev/null 2>"$folder/err"; then
      echo 'ok torus.json/python'
    else
      echo "not ok torus.json/python: $(tail -n 1 "$folder/err")"
      status=1
    fi
  fi
fi

if write_trace torus.json.gz "${torus[@]}"; then
  judge "$folder/torus.json.gz"
  if [ -s "$folder/torus.json" ]; then
    if gzip -dc "$folder/torus.json.gz" | cmp -s - "$folder/torus.json"; then
      echo 'ok torus.json.gz/same as torus.json'
    else
      echo 'not ok torus.json.gz/same as torus.json: the texts differ'
      status=1
    fi
  fi
fi

if write_trace torus.pftrace "${torus[@]}" && [ -s "$folder/torus.json" ]; then
  judge --same "$folder/torus.json" "$folder/torus.pftrace"
fi

if write_trace pipeline.json "${pipeline[@]}"; then
  judge "$folder/pipeline.json"
  must_have pipeline.json '"cat":"p2p"' 'sends and receives'
  must_have pipeline.json '"ph":"s"' arrows
fi

if write_trace pipeline.pftrace.gz "${pipeline[@]}" && [ -s "$folder/pipeline.json" ]; then
  judge --same "$folder/pipeline.json" "$folder/pipeline.pftrace.gz"
fi

exit "$status"
