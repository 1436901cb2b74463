#!/bin/bash
# Instructions that four small jobs take, by callgrind, against those in tests/data/instructions.tsv: they come out the same on any machine,
# where a clock does not. More than 5 % above the record fails; UPDATE=1 writes a new one, and the commit says why. And how they grow: eight
# times the ranks, layers or microbatches take at most 8.8 times as many. Prints "ok NAME" or "not ok NAME: why". After a build also by hand:
# BUILD=build tests/check-instructions.sh
set -u
unset POD_CHECK # its checks are no part of the work

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd) || exit 1
record=$SRC/tests/data/instructions.tsv
compiled=${POD_CC:-gcc}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
status=0

# The record is of one compiler at its usual settings.
skip ()
{
  echo "ok instructions: not counted: $1"
  exit 0
}
command -v valgrind >"$folder/which" || skip "valgrind is not installed"
[ -z "${SANITIZE:-}" ] || skip "sanitizers add their own"
[ "$(uname -m)" = x86_64 ] || skip "the record is of x86_64, this is $(uname -m)"
version=$("$compiled" -dumpversion 2>"$folder/err" | cut -d . -f 1)
[ "$("$compiled" --version 2>"$folder/err" | grep -c 'Free Software Foundation')-$version" = 1-12 ] || skip "the record is of gcc 12, this is $compiled $version"
case $(cat "$BUILD/flags" 2>"$folder/err") in
  *' -O2 -g'*) ;;
  *) skip "the record is of -O2 -g" ;;
esac

# count ARGUMENT...: instructions of podsim run
count ()
{
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$BUILD/podsim" run "$@" >"$folder/stdout" 2>"$folder/log" || return 1
  awk '/Collected/ { print $NF }' "$folder/log"
}

job ()
{
  case $1 in
    gpt) set -- --topology h100:8x128 --model gpt3-175b --layers 8 --layout 'tp=8 pp=2 dp=64' --seq-len 2048 --global-batch 1024 ;;
    llama) set -- --topology h100:8x64 --model llama3-70b --layers 16 --layout 'tp=8 pp=4 dp=16' --seq-len 8192 --global-batch 128 --zero 1 ;;
    torus) set -- --topology tpu-v5p:8x8x8 --model llama3-8b --layers 8 --layout 'fsdp=128 tp=4' --seq-len 4096 --global-batch 256 ;;
    experts) set -- --topology h100:8x32 --model mixtral-8x7b --layers 8 --layout 'dp=64 tp=4 ep=8' --seq-len 4096 --global-batch 128 ;;
    *) return 1 ;;
  esac
  count "$@"
}

for name in gpt llama torus experts; do
  was=$(awk -F '\t' -v name=$name '$1 == name { print $2 }' "$record")
  if ! now=$(job $name); then
    echo "not ok $name: $(tail -n 1 "$folder/log")"
    status=1
  elif [ -n "${UPDATE:-}" ]; then
    awk -F '\t' -v name=$name -v now="$now" 'BEGIN { OFS = FS } $1 == name { $2 = now } { print }' "$record" >"$folder/record" && cp "$folder/record" "$record"
    echo "ok $name"
  elif [ "$now" -le $((was + was / 20)) ]; then
    echo "ok $name"
  else
    echo "not ok $name: $now instructions, $was in $record: $(((now - was) * 100 / was)) % more"
    status=1
  fi
done

# $1: name, then the words of the smaller job up to "--", then those of the one eight times as large: three times twice as much, each time
# within a tenth on the average
grows ()
{
  local name=$1 small=() a b
  shift
  while [ "$1" != -- ]; do
    small+=("$1")
    shift
  done
  shift
  if a=$(count "${small[@]}") && b=$(count "$@") && [ $((b * 10)) -le $((a * 88)) ]; then
    echo "ok linear/$name"
  else
    echo "not ok linear/$name: ${a:-no} instructions, for eight times as much ${b:-no}"
    status=1
  fi
}

# Every rank is run; and where microbatches grow, one is recorded, for what nobody records is simulated once where it is steady.
common=(--model llama3-8b --seq-len 2048 --fold off)
small=("${common[@]}" --topology h100:8x8 --layout 'tp=8 pp=4 dp=2')
grows ranks "${common[@]}" --layers 4 --topology h100:8x16 --layout 'tp=8 pp=4 dp=4' --global-batch 16 -- \
  "${common[@]}" --layers 4 --topology h100:8x128 --layout 'tp=8 pp=4 dp=32' --global-batch 128
grows layers "${small[@]}" --global-batch 16 --layers 8 -- "${small[@]}" --global-batch 16 --layers 64
grows microbatches "${small[@]}" --layers 8 --global-batch 16 --trace "$folder/a.json" --trace-ranks 0 -- \
  "${small[@]}" --layers 8 --global-batch 128 --trace "$folder/b.json" --trace-ranks 0

exit "$status"
