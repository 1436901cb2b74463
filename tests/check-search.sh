#!/bin/bash
# Searches that are killed and go on, two into one database, threads and processes: one answer. Prints "ok NAME" or "not ok NAME: why".
# Environment, from tests/run.sh: SRC (source tree), PODSIM (program). Alone: tests/check-search.sh, with build/podsim, in a scratch folder.
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
PODSIM=${PODSIM:-$SRC/build/podsim}
export LC_ALL=C
job=(search --topology h100:8x2 --model llama3-8b --layers 4 --seq-len 4096 --global-batch 32 --top 20)

verdict ()
{
  if [ -z "$2" ]; then
    echo "ok check-search/$1"
  else
    echo "not ok check-search/$1: $2"
  fi
}

# Prints how many runs a search made (a line of --timings in file $1)
runs_of ()
{
  sed -n 's/.* candidates, \([0-9]*\) of them run.*/\1/p' "$1"
}

"$PODSIM" "${job[@]}" --jobs 1 --json timed.json --timings >one.out 2>one.err
"$PODSIM" "${job[@]}" --jobs 1 --json one.json >/dev/null 2>&1
verdict answer "$([ -s one.json ] && [ -s one.out ] || cat one.err)"
all=$(runs_of one.err)

for jobs in 2 7; do
  "$PODSIM" "${job[@]}" --jobs $jobs --json many.json >many.out 2>&1
  verdict "jobs-$jobs" "$(cmp one.json many.json 2>&1; cmp one.out many.out 2>&1)"
done

# What bounds rule out is none of the best: the answers are those of a search that runs everything, in spaces where they rule out most. Prints
# the answer without the counts of what was run ($1: a name; then the search)
check_pruned ()
{
  local name=$1
  shift
  "$PODSIM" search "$@" --timings 2>pruned.err | grep -v '^space ' >pruned.out
  "$PODSIM" search "$@" --timings --exhaustive 2>whole.err | grep -v '^space ' >whole.out
  verdict "pruned-$name" "$([ -s whole.out ] || cat whole.err
    cmp pruned.out whole.out 2>&1
    [ "$(($(runs_of pruned.err) * 3))" -le "$(runs_of whole.err)" ] || echo "$(runs_of pruned.err) of $(runs_of whole.err) were run: bounds rule out next to nothing")"
}

small=(--layers 8 --seq-len 2048 --global-batch 64 --top 3)
check_pruned pipelines --topology h100:8x4 --model llama3-8b "${small[@]}" --space cp=1 --space fsdp=1 --space vpp=1,2 --space "schedule=1f1b;gpipe"
check_pruned torus --topology tpu-v5p:4x4x2 --model llama3-8b "${small[@]}" --space cp=1 --space dp=1
check_pruned experts --topology h100:8x4 --model mixtral-8x7b "${small[@]}" --space cp=1 --space pp=1,2 --space vpp=1 --space fsdp=1
check_pruned memory --topology h100:8x4 --model llama3-8b "${small[@]}" --space cp=1 --space vpp=1 --objective memory
check_pruned cost --topology h100:8x4 --model llama3-8b "${small[@]}" --space "topology=h100:8x4;tpu-v5e:4x8" --space cp=1 --space vpp=1 --space dp=1 --objective cost

# Where nothing fits, what comes nearest: 8.03 B parameters of 2 + 2 + 12 bytes
"$PODSIM" search --topology h100:1 --model llama3-8b --seq-len 4096 --global-batch 64 --space pp=1 >none.out 2>&1
verdict smallest "$(grep -q '^the smallest needs 128 GB or more of 84.9 GB: --layout dp=1 ' none.out || cat none.out)"

# The table and its columns can be asked, when the program has a database
if "$PODSIM" "${job[@]}" --db probe.sqlite --space tp=8 --space pp=1 --space cp=1 >/dev/null 2>probe.err; then
  # Killed at several moments; each goes on where the last one stopped, and none has more than its chunks to do again
  for after in 0.05 0.1 0.15 0.2 0.3; do # the shell says "Killed" of each on stderr
    { timeout -s KILL $after "$PODSIM" "${job[@]}" --jobs 2 --db killed.sqlite; } >/dev/null 2>&1
  done
  kept=$("$PODSIM" results killed.sqlite --csv 2>/dev/null | tail -n +2 | wc -l)
  "$PODSIM" "${job[@]}" --jobs 2 --db killed.sqlite --timings >killed.out 2>killed.err
  "$PODSIM" "${job[@]}" --jobs 2 --db killed.sqlite --json killed.json >/dev/null 2>&1
  verdict killed-answer "$(cmp one.json killed.json 2>&1; cmp one.out killed.out 2>&1)"
  again=$(runs_of killed.err)
  verdict killed-again "$([ "$((kept + again))" -eq "$all" ] || echo "$kept runs were kept, $again made after that, but there are $all")"
  "$PODSIM" "${job[@]}" --db killed.sqlite --timings >/dev/null 2>again.err
  verdict all-kept "$([ "$(runs_of again.err)" = 0 ] || echo "$(runs_of again.err) runs are made again")"

  # A sweep likewise: no row is made twice, and the last answer is that of one that nobody killed
  grid=(sweep --topology h100:8x2 --model llama3-8b --seq-len 4096 --vary global-batch=32:256:*2 --vary "layout=fsdp=16;dp=2 tp=8;dp=4 tp=2 pp=2" --vary recompute=none,full)
  "$PODSIM" "${grid[@]}" --csv whole.csv --json whole.json >/dev/null 2>&1
  for after in 0.05 0.1 0.2; do
    { timeout -s KILL $after "$PODSIM" "${grid[@]}" --jobs 2 --db sweep.sqlite; } >/dev/null 2>&1
  done
  "$PODSIM" "${grid[@]}" --jobs 2 --db sweep.sqlite --csv killed.csv --json killed-sweep.json >/dev/null 2>sweep.err
  kept=$("$PODSIM" results sweep.sqlite --csv 2>/dev/null | tail -n +2 | wc -l)
  verdict killed-sweep "$(cmp whole.csv killed.csv 2>&1; cmp whole.json killed-sweep.json 2>&1; [ "$kept" -eq 24 ] || echo "$kept rows are kept, not 24: $(cat sweep.err)")"

  # Two at once into one file
  "$PODSIM" "${job[@]}" --db both.sqlite --json both1.json >/dev/null 2>both1.err &
  "$PODSIM" "${job[@]}" --objective memory --db both.sqlite --json both2.json >/dev/null 2>both2.err
  wait $!
  "$PODSIM" "${job[@]}" --objective memory --json alone2.json >/dev/null 2>&1
  verdict two-at-once "$(cat both1.err both2.err; cmp one.json both1.json 2>&1; cmp alone2.json both2.json 2>&1)"

  got=$("$PODSIM" results both.sqlite --where "layout = 'tp=8 pp=2' AND micro_batch = 1 AND recompute = 'full' AND zero = 0" --csv | tail -n +2 | wc -l)
  verdict where "$([ "$got" -eq 1 ] || echo "$got rows instead of 1")"
  "$PODSIM" results both.sqlite --where "1) UNION SELECT * FROM run --" >/dev/null 2>sql.err
  status=$?
  verdict where-condition "$([ $status -eq 2 ] || echo "exit status $status, $(cat sql.err)")"
  "$PODSIM" results one.json >/dev/null 2>sql.err
  status=$?
  verdict no-database "$([ $status -eq 2 ] || echo "exit status $status, $(cat sql.err)")"
elif grep -q 'was built without SQLite' probe.err; then
  echo "ok check-search/databases: skipped, $(cat probe.err)"
else
  verdict database "$(cat probe.err)"
fi

# Ranks of MPI: the same answer, to the byte. Root may not start mpirun unless it says so twice; Open MPI alone knows --oversubscribe
module=$(dirname "$PODSIM")/podsim-mpi.so
if [ -e "$module" ] && command -v mpirun >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  launch=(mpirun -n 4)
  if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    launch=(mpirun --oversubscribe -n 4)
  fi
  # What Open MPI's modules keep when they are unloaded is theirs: no search for leaks among ranks
  ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 "${launch[@]}" "$PODSIM" "${job[@]}" --json ranks.json >ranks.out 2>ranks.err </dev/null
  verdict ranks "$(cmp one.json ranks.json 2>&1; cmp one.out ranks.out 2>&1; tail -n 3 ranks.err)"
  # Tasks of srun that no MPI joins would each search by itself, into one database
  SLURM_STEP_NUM_TASKS=4 "$PODSIM" "${job[@]}" >alone.out 2>alone.err </dev/null
  status=$?
  verdict ranks-unjoined "$([ $status -ne 0 ] && grep -q 'SLURM_STEP_NUM_TASKS=4.*MPI knows of one alone' alone.err || echo "exit status $status, $(cat alone.err)")"
else
  echo "ok check-search/ranks: skipped, there is no mpirun, or the program was built without MPI"
fi

# SIGINT: the best so far, under a name that says so. Sent when the program listens for it (bit 1 of what it catches), and twice, as timeout(1) and
# launchers of MPI do
env --default-signal=INT "$PODSIM" search --topology h100:8x64 --model llama3-70b --seq-len 4096 --global-batch 512 --jobs 2 \
  --json stopped.json >stopped.out 2>stopped.err </dev/null &
search=$!
while caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$search/status 2>/dev/null) && [ -n "$caught" ] && ! ((0x$caught & 2)); do
  sleep 0.05
done
sleep 1
kill -INT $search
kill -INT $search
wait $search
status=$?
verdict interrupt-status "$([ $status -eq 1 ] || echo "exit status $status, $(cat stopped.err)")"
verdict interrupt-json "$([ -s stopped.partial.json ] && [ ! -e stopped.json ] || echo "no stopped.partial.json, or a stopped.json")"
