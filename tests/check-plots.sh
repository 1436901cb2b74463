#!/bin/bash
# Draws each kind of picture of --plot and looks at it: .tsv and .gp beside .png and .svg, sizes, axes with their units,
# colours of the palette alone, and a script that draws the same again by hand.
# Prints "ok NAME" or "not ok NAME: why". After a build also by hand: BUILD=build tests/check-plots.sh
set -u

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd) || exit 1
podsim=$BUILD/podsim
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
status=0

# $1: name, $2: what is wrong, empty when nothing is
verdict ()
{
  if [ -z "$2" ]; then
    echo "ok check-plots/$1"
  else
    echo "not ok check-plots/$1: $2"
    status=1
  fi
}

# Width and height of a PNG, from its header
size_of ()
{
  od -An -tu1 -j16 -N8 "$1" | awk '{ print $3 * 256 + $4 "x" $7 * 256 + $8 }'
}

# Colours that a picture of ours may have: those of src/report/palette.c and the pale ones of schedules, and greys
palette=$(grep -hoE '#[0-9a-f]{6}' "$SRC/src/report/palette.c" | sort -u)

# A colour that is neither of the palette nor grey
stranger ()
{
  grep -hoE "#[0-9a-fA-F]{6}" "$1" | tr 'A-F' 'a-f' | sort -u | grep -vxF "$palette" \
    | grep -vxE '#(..)\1\1' | head -n 1
}

# $1: kind, then the words that its axes must have
judge ()
{
  local kind=$1 why='' file word colour
  shift
  for file in "$kind".{tsv,gp,png,svg}; do
    [ -s "$folder/$file" ] || why="$why $file is missing"
  done
  verdict "$kind/files" "$why"
  [ -z "$why" ] || return

  why=
  xmllint --noout "$folder/$kind.svg" 2>/dev/null || why='no XML'
  for word in "$@"; do
    grep -qF -- "$word" "$folder/$kind.svg" || why="$why \"$word\" is not in it"
  done
  [ "$(grep -c '<path' "$folder/$kind.svg")" -ge 5 ] || why="$why nothing is drawn"
  verdict "$kind/svg" "$why"

  why=
  file=$(sed -n 's/^set terminal pngcairo .*size \([0-9]*\),\([0-9]*\).*/\1x\2/p' "$folder/$kind.gp")
  [ "$(size_of "$folder/$kind.png")" = "$file" ] || why="is $(size_of "$folder/$kind.png"), not $file"
  [ "$(stat -c %s "$folder/$kind.png")" -gt 5000 ] || why="$why nothing is drawn"
  verdict "$kind/png" "$why"

  if [ "$kind" != schedule ]; then
    colour=$(stranger "$folder/$kind.gp")
    verdict "$kind/colours" "${colour:+$colour is not in the palette}"
  fi

  mkdir "$folder/again"
  cp "$folder/$kind".{gp,tsv} "$folder/again"
  (cd "$folder/again" && gnuplot "$kind.gp") >"$folder/out" 2>&1
  why=
  for file in "$kind".{png,svg}; do
    cmp -s "$folder/$file" "$folder/again/$file" || why="$why $file is another: $(head -n 1 "$folder/out")"
  done
  verdict "$kind/drawn again" "$why"
  rm -r "$folder/again"
}

if ! command -v gnuplot >/dev/null; then
  echo 'ok check-plots # no gnuplot'
  exit 0
fi

"$podsim" run --topology h100:8x4 --model llama3-8b --seq-len 4096 --global-batch 32 --layout "dp=2 tp=8 pp=2" \
  --plot "$folder" >/dev/null 2>"$folder/err"
verdict run "$(cat "$folder/err")"
judge breakdown 'forward and backward' 'exposed tp' 'time (ms)'
judge memory 'memory of a device (GB)' 'time (ms)' 'capacity, ' 'rank 16 (stage 1'
judge schedule 'stage 1' 'backward' 'time (ms)'

"$podsim" collective --topology h100:8 --kind all_reduce --bytes 8:1GiB:4 --plot "$folder" >/dev/null 2>"$folder/err"
verdict collective "$(cat "$folder/err")"
judge collective 'size (bytes)' 'time (us)' 'bandwidth (GB/s)' busbw

"$podsim" validate collectives --table "$SRC/workloads/measured/nccl-h200-large.tsv" --chip h200 --plot "$folder" >/dev/null 2>"$folder/err"
verdict validate "$(cat "$folder/err")"
judge collectives-nccl-h200-large-h200 'measured: time, us' 'predicted: time, us' '20 % more, less' 'all_reduce ('
# As many points as the legend says, and as rows are judged
"$podsim" validate collectives --table "$SRC/workloads/measured/nccl-h200-large.tsv" --chip h200 --per-row "$folder/rows" >/dev/null
why=$(awk -F'\t' 'FNR == NR { if (FNR > 1 && $13 != "no") rows++; next } NF == 2 && $1 > 0 { points++ } END { if (rows == 0 || rows != points) print points " points, " rows " rows" }' \
  "$folder/rows" "$folder/collectives-nccl-h200-large-h200.tsv")
verdict validate/points "$why"

"$podsim" compare --topology h100:8x8 --topology tpu-v5p:4x4x4 --model llama3-8b --global-batch 64 --layout "fsdp=16 tp=4" \
  --plot "$folder" --report "$folder/compare.html" >/dev/null 2>"$folder/err"
verdict compare "$(cat "$folder/err")"
judge compare 'tpu-v5p:4x4x4' 'exposed fsdp' 'time (ms)'
why=
for word in '<dt>fastest</dt>' '<span class="label">h100:8x8</span>' '<th scope="row">tpu-v5p:4x4x4</th>'; do
  grep -qF -- "$word" "$folder/compare.html" || why="$why no $word"
done
verdict compare/page "$why"

"$podsim" search --space "topology=h100:8x1;h100:8x2" --model llama3-8b --seq-len 2048 --global-batch 32 --layers 8 --space pp=1 --space cp=1 \
  --top 4 --plot "$folder" --report "$folder/search.html" --json "$folder/search.json" >/dev/null 2>"$folder/err"
verdict search "$(cat "$folder/err")"
judge search-best 'best by time' 'time (ms)' 'forward and backward' 'h100:8x2: '
judge search-memory 'peak and reserve (GB)' 'time of a step (ms)' 'no other layout is better in both'
judge search-chips 'chips used' 'time of a step (ms)' 'h100:8x1: '
why=
for word in '<dt>best layout</dt>' 'id="memory"' 'id="chips"' '<span class="label">h100:8x2: '; do
  grep -qF -- "$word" "$folder/search.html" || why="$why no $word"
done
verdict search/page "$why"
# All of a front stands in the data, whatever is named, and the terms of a bar add up to its step
why=
sed -n '/"time_memory"/,/"time_chips"/p' "$folder/search.json" | grep -c '"command"' >"$folder/n"
grep -c '^front' "$folder/search-memory.tsv" | cmp -s - "$folder/n" || why='not the whole front'
awk -F '\t' 'NR > 1 { sum[$1] += $5 } END { for (i = 0; i < 4; i++) printf "%.0f\n", sum[i] * 1e12 }' "$folder/search-best.tsv" >"$folder/sums"
sed -n '/"best"/,/"pareto"/s/.*"time_ps" *: *\([0-9]*\).*/\1/p' "$folder/search.json" | cmp -s - "$folder/sums" || why="$why bars are not their steps"
verdict search/data "$why"

exit "$status"
