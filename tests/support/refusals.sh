# Sourced by the tests of refusals, which set SRC and only. Makes a scratch folder, goes there, and defines
# "refused". A refusal has the exit status that base/error.h gives it and exactly one line on stderr, which
# says where and what; nothing on stdout; and no file is left behind.
# shellcheck shell=bash disable=SC2034,SC2154

PODSIM=${PODSIM:-$SRC/build/podsim}
SANITIZE=${SANITIZE:-}
limit_s=120 # only ends what hangs
may_print=  # set where results may stand on stdout before the failure
result=0
prefix=()   # a command before podsim
unset PODSIM_PATH
shopt -s nullglob dotglob

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir out in

# $1: the name, $2: what is wrong, empty when nothing is.
verdict ()
{
  local name=${1//[[:cntrl:]]/ }
  if [ -z "$2" ]; then
    echo "ok $name"
  else
    echo "not ok $name: ${2//[[:cntrl:]]/ }"
    result=1
  fi
}

is_wanted ()
{
  [[ $1 == *"$only"* ]]
}

podsim ()
{
  timeout -k 5 "$limit_s" "${prefix[@]}" "$PODSIM" "$@" >stdout 2>stderr </dev/null
}

# $1: the wanted status (ERE), $2: the status it was, $3: what the one line must match (ERE). Sets $why, empty
# when all is well, and clears the folder out.
judge ()
{
  local lines line left
  mapfile -t lines <stderr
  line=${lines[0]:-}
  left=(out/* .podsim-* in/.podsim-*)
  why=
  if [ "$2" -eq 124 ] || [ "$2" -eq 137 ]; then
    why="hangs"
  elif ! [[ $2 =~ ^$1$ ]]; then
    why="exit status $2 instead of $1: ${line:0:300}"
  elif [ "${#lines[@]}" -ne 1 ]; then
    why="${#lines[@]} lines on stderr: ${line:0:300}"
  elif ! [[ $line =~ $3 ]]; then
    why="stderr does not match '$3': ${line:0:300}"
  elif [ "${#line}" -gt 2000 ]; then
    why="a line of ${#line} bytes on stderr: ${line:0:100}"
  elif [[ $line == *[[:cntrl:]]* ]]; then
    why="control bytes on stderr"
  elif [ -s stdout ] && [ -z "$may_print" ]; then
    IFS= read -r line <stdout
    why="stdout: ${line:0:100}"
  elif [ "${#left[@]}" -gt 0 ]; then
    why="left behind: ${left[*]}"
  fi
  [ "${#left[@]}" -eq 0 ] || { rm -rf out "${left[@]}"; mkdir out; }
}

# refused NAME STATUS PATTERN WORDS...: podsim with these words; PATTERN (ERE) follows "podsim: ".
refused ()
{
  local name=$1 wanted=$2 pattern=$3 status=0 why
  shift 3
  is_wanted "$name" || return 0
  podsim "$@" || status=$?
  judge "$wanted" "$status" "^podsim: $pattern"
  verdict "$name" "$why"
}

# The same of a whole run that asks for every file there is; later options win.
job=(--topology tpu-v5p:2x2x2 --model llama3-8b --seq-len 4096 --global-batch 8)
files=(--json out/r.json --trace out/t.json.gz --plot out/plots --dump-program out/p.jsonl)
refused_run ()
{
  local name=$1 wanted=$2 pattern=$3
  shift 3
  refused "$name" "$wanted" "$pattern" run "${job[@]}" "${files[@]}" "$@"
}
