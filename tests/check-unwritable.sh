#!/bin/bash
# Outputs that cannot be written, closed standard streams, and interrupts: nothing half-written stays. What
# a refusal must be stands in tests/support/refusals.sh. Prints "ok NAME" or "not ok NAME: why"; run by
# tests/run.sh, or by hand: PODSIM=build/podsim tests/check-unwritable.sh [WORD], only names with WORD.
# shellcheck disable=SC2034,SC2154,SC2317 # what refusals.sh sets and calls
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
only=${1:-}
# shellcheck source=/dev/null
. "$SRC/tests/support/refusals.sh"

if ! podsim run "${job[@]}" --json good-result; then
  verdict good-result "$(head -n 1 stderr)"
  exit 1
fi

# ---- files that cannot be written ----

writes=(run "${job[@]}")
may_print=yes
for name in json dump-program report trace; do
  end=.json
  refused "write/$name into a missing folder" 1 "nowhere/r\\$end: cannot write" "${writes[@]}" --$name nowhere/r$end
  [ $name = trace ] || refused "write/$name onto a folder" 1 'in/: ' "${writes[@]}" --$name in/
  mkdir "d$end"
  refused "write/$name onto a folder of that name" 1 "d\\$end: cannot write" "${writes[@]}" --$name "d$end"
  rmdir "d$end"
  ln -s /dev/full "full$end"
  refused "write/$name to a full device" 1 "full\\$end: cannot write: No space" "${writes[@]}" --$name "full$end"
  rm "full$end"
  if [ "$(id -u)" -ne 0 ]; then # root may write anywhere
    mkdir -m 500 readonly
    refused "write/$name into a read-only folder" 1 'readonly/r' "${writes[@]}" --$name readonly/r$end
    rmdir readonly
  fi
done
refused 'write/plot onto a file' 1 'good-result: ' "${writes[@]}" --plot good-result
refused 'write/plot below a file' 1 'good-result/plots: ' "${writes[@]}" --plot good-result/plots
may_print=
refused 'write/trace of an unknown suffix' 2 '.*out/t.txt: ' "${writes[@]}" --trace out/t.txt

# What stood there before outlives a run that fails
echo before >old.json
refused 'write/old file' 3 '' "${writes[@]}" --layout fsdp=3 --json old.json
verdict 'write/old file stays' "$([ "$(<old.json)" = before ] || echo 'it was overwritten')"

# unwritten NAME STATUS PATTERN WORDS...: with stdout closed, or full
unwritten ()
{
  local name=$1 wanted=$2 pattern=$3 status=0 why
  shift 3
  : >stdout
  is_wanted "$name (closed)" || return 0
  timeout -k 5 "$limit_s" "$PODSIM" "$@" >&- 2>stderr </dev/null || status=$?
  judge "$wanted" "$status" "^podsim: $pattern"
  verdict "$name (closed)" "$why"
  status=0
  timeout -k 5 "$limit_s" "$PODSIM" "$@" >/dev/full 2>stderr </dev/null || status=$?
  judge "$wanted" "$status" "^podsim: $pattern"
  verdict "$name (full)" "$why"
}

unwritten stdout/run 1 '.*standard output' "${writes[@]}"
unwritten stdout/json 1 'standard output: cannot write' "${writes[@]}" --json -
unwritten stdout/model 1 '.*standard output' model llama3-8b
unwritten stdout/topology 1 '.*standard output' topology
unwritten stdout/svg 1 'standard output: cannot write' topology h100:8 --svg -
unwritten stdout/collective 1 '.*standard output' collective --topology h100:8 --kind all_reduce --ranks 8
unwritten stdout/roofline 1 '.*standard output' roofline --topology h100 --shape B=8,D=8,F=8
unwritten stdout/diff 1 '.*standard output' diff good-result good-result
unwritten stdout/version 1 '.*standard output' --version
unwritten stdout/help 1 '.*standard output' --help
unwritten 'stdout/help of a command' 1 '.*standard output' run --help

# With 0, 1 and 2 closed, no file may get one of these numbers: it would hold the messages
if is_wanted 'closed/all'; then
  status=0
  timeout -k 5 "$limit_s" "$PODSIM" run "${job[@]}" --json out/r.json --trace out/t.json <&- >&- 2>&- || status=$?
  why=
  [ $status -eq 1 ] || why="exit status $status instead of 1"
  cmp -s out/r.json good-result || why=${why:-"out/r.json is not what it is otherwise"}
  verdict 'closed/all' "$why"
  rm -rf out && mkdir out
fi

# ---- interrupts ----

long=(run --topology tpu-v5p:16x16x16 --model llama3-8b --seq-len 4096 --global-batch 4096 --fold off --json out/r.json)

# What stands in out is whole: the reader takes it, though it is no result. Sets $why.
judge_remains ()
{
  local file
  for file in out/*; do
    podsim diff "$file" "$file"
    grep -q 'not a result of podsim run' stderr || why=${why:-"$file: $(head -n 1 stderr)"}
    [[ $file == *partial* ]] || why=${why:-"left behind: $file"}
  done
  rm -rf out && mkdir out
}

# A run that ends before its interrupt shows nothing
for delay in 0.1 0.5 1.5; do
  is_wanted "interrupt/after $delay s" || continue
  status=0
  why=
  timeout --preserve-status -k "$limit_s" -s INT "$delay" "$PODSIM" "${long[@]}" --trace out/t.json.gz >stdout 2>stderr </dev/null || status=$?
  if [ $status -ne 0 ]; then
    [ $status -eq 1 ] || [ $status -eq 130 ] || why="exit status $status: $(head -n 1 stderr)"
    judge_remains
  fi
  rm -rf out && mkdir out
  verdict "interrupt/after $delay s" "$why"
done

# Ended while it writes: a file that has no name yet is seen as deleted, one that has as .podsim-*
if is_wanted 'interrupt/while writing'; then
  why=
  timeout -k 5 "$limit_s" "$PODSIM" run "${job[@]}" --topology tpu-v5p:8x8x8 --global-batch 512 --fold off --trace-ranks all --trace out/t.json.gz >stdout 2>stderr </dev/null &
  parent=$!
  while kill -0 $parent 2>/dev/null; do
    child=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null)
    child=${child%% *}
    temporary=(out/.podsim-*)
    if [ -n "$child" ] && { [ ${#temporary[@]} -gt 0 ] || [[ $(readlink /proc/"$child"/fd/* 2>/dev/null) == *"/out/"*"(deleted)"* ]]; }; then
      kill -TERM "$child" 2>/dev/null
      break
    fi
  done
  status=0
  wait $parent || status=$?
  if [ $status -ne 0 ]; then
    [ $status -eq 143 ] || why="exit status $status: $(head -n 1 stderr)"
    judge_remains
  fi
  verdict 'interrupt/while writing' "$why"
fi

exit "$result"
