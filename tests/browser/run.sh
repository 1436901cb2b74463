#!/bin/bash
# In headless Chromium: opens traces of podsim in speedscope and finds their lanes and slices on the page; opens reports,
# zooms and clicks in them.
# Prints "ok NAME" or "not ok NAME: why"; exits 1 when anything failed. `make check-browser` calls it; by hand, after a
# build: BUILD=build tests/browser/run.sh. Packages and screenshots are put in $BUILD/browser.
set -u

SRC=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd) || exit 1
PODSIM=${PODSIM:-$BUILD/podsim}
folder=$BUILD/browser
log=$folder/log

fail ()
{
  echo "not ok browser/$1: $2"
  if [ -s "$log" ]; then
    head -n 20 "$log" | sed 's/^/    /'
  fi
  exit 1
}

mkdir -p "$folder" || exit 1
: >"$log"

CHROMIUM=
for name in chromium chromium-browser google-chrome; do
  CHROMIUM=$(command -v "$name") && break
done
[ -n "$CHROMIUM" ] || fail chromium 'not installed'
export CHROMIUM

# Beside the build, so that the source tree stays as it is; once per lock file
cp "$SRC"/tests/browser/{package.json,package-lock.json,.npmrc,speedscope.mjs,report.mjs,pages.mjs} "$folder" || exit 1
cd "$folder" || exit 1
if ! cmp -s package-lock.json node_modules/.podsim-lock; then
  npm ci >"$log" 2>&1 || fail npm 'npm ci failed'
  cp package-lock.json node_modules/.podsim-lock
fi
echo 'ok browser/packages'

# $1: option, $2: file, then the step. One that does not fit in memory (exit 3) has its files all the same
write_file ()
{
  local option=$1 name=$2 status=0
  shift 2
  rm -f "$name"
  "$PODSIM" run "$@" "$option" "$name" >"$log" 2>&1 || status=$?
  if [ ! -s "$name" ] || { [ "$status" -ne 0 ] && [ "$status" -ne 3 ]; }; then
    fail "$name" "podsim run: exit status $status"
  fi
}

torus=(--topology tpu-v5p:4x4x4 --model llama3-8b --seq-len 4096 --global-batch 64 --layout "fsdp=16 tp=4")
pipeline=(--topology h100:8x4 --model llama3-8b --seq-len 4096 --global-batch 32 --layout "dp=2 tp=8 pp=2")

write_file --trace torus.json "${torus[@]}"
write_file --trace pipeline.json.gz "${pipeline[@]}"
write_file --report torus.html "${torus[@]}"
write_file --report pipeline.html "${pipeline[@]}"

# $1: file, then the command that writes it
write_page ()
{
  local name=$1
  shift
  rm -f "$name"
  "$PODSIM" "$@" --report "$name" >"$log" 2>&1 || fail "$name" "podsim $1: exit status $?"
}

job=(--model llama3-8b --seq-len 4096 --global-batch 256)
write_page search.html search --topology h100:8 "${job[@]}" --space pp=1 --space cp=1 --allow-idle
write_page compare.html compare --shapes tpu-v5p:128 --topology h100:8x16 "${job[@]}" --layout fsdp=128 --recompute full --tokens 15e12
write_page sweep.html sweep --preset fsdp-tp --fidelity book --model mlp-block --topology tpu-v5p:4x4x4 --seq-len 64
write_page scaling.html sweep --preset weak-scaling --topology h100:8 "${job[@]}" --vary "layout=fsdp=auto;dp=auto tp=8"

rm -f ./*.png
status=0
node report.mjs "$folder" torus.html pipeline.html || status=1
node pages.mjs "$folder" search.html compare.html sweep.html scaling.html || status=1
node speedscope.mjs "$folder" torus.json pipeline.json.gz || status=1
exit $status
