#!/bin/bash
# Holds docs/man/podsim.1 and docs/completion/podsim against what the program says in --help: each command and option has its
# entry and is completed, and the page has no option that is gone. Prints "ok NAME" or "not ok NAME: why".
# Environment, from tests/run.sh: SRC (source tree), PODSIM (program). Alone: tests/check-docs.sh, with build/podsim.
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
PODSIM=${PODSIM:-$SRC/build/podsim}
export LC_ALL=C
page=$SRC/docs/man/podsim.1
completion=$SRC/docs/completion/podsim

# verdict NAME WHY: ok when WHY is empty
verdict ()
{
  if [ -z "$2" ]; then
    echo "ok $1"
  else
    echo "not ok $1: $2"
  fi
}

commands ()
{
  "$PODSIM" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# Options of a command, without their values
options ()
{
  "$PODSIM" "$1" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'
}

# Options of the page's section for a command: those that begin a paragraph, --no- forms left out
page_options ()
{
  sed 's/\\-/-/g' "$page" \
    | awk -v heading=".SS \"podsim $1\"" '
        /^\.S[SH]/ { in_section = ($0 == heading) }
        in_section && is_tag { print }
        { is_tag = ($0 == ".TP" || $0 == ".TQ") }' \
    | grep -o -e '--[a-z0-9-]*' | grep -v -e '^--no-'
}

# Whether the page's section for a command leaves the options of the job to that of podsim run
is_of_job ()
{
  awk -v heading=".SS \"podsim $1\"" '
    /^\.S[SH]/ { in_section = ($0 == heading) }
    in_section && /^The options of the job are those of$/ { found = 1 }
    END { exit !found }' "$page"
}

# Options of a command that are none of the job
own_options ()
{
  "$PODSIM" "$1" --help | sed '/^The job:/,/^$/d' | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'
}

# $1, $2: lists, a word a line. What the first has and the second has not, on one line
missing ()
{
  comm -23 <(printf '%s\n' "$1" | sort -u) <(printf '%s\n' "$2" | sort -u) | grep . | tr '\n' ' '
}

list=$(commands)
verdict check-docs/commands "$([ -n "$list" ] || echo 'podsim --help lists no commands')"
for command in $list; do
  if is_of_job "$command"; then said=$(own_options "$command"); else said=$(options "$command"); fi
  written=$(page_options "$command")
  why=
  [ -n "$said" ] || why="podsim $command --help lists no options"
  absent=$(missing "$said" "$written")
  [ -z "$absent" ] || why="docs/man/podsim.1 has no entry for $absent"
  gone=$(missing "$written" "$said")
  [ -z "$gone" ] || why="$why docs/man/podsim.1 has $gone, which podsim $command --help has not"
  verdict "check-docs/man/$command" "$why"
done

# Each --option=VALUE of a help text has words that say what it is
for command in $list; do
  bare=$("$PODSIM" "$command" --help | grep -E '^  --[a-z0-9-]*(=[^ ]*)? *$' | tr '\n' ' ')
  verdict "check-docs/help/$command" "${bare:+no help for $bare}"
done

# ---- the page itself ----
why=
if command -v man >/dev/null && command -v groff >/dev/null; then
  why=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | head -n 3 | tr '\n' ' ')
elif command -v groff >/dev/null; then
  why=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null | head -n 3 | tr '\n' ' ')
fi
verdict check-docs/man-lint "$why"

version=$("$PODSIM" --version)
verdict check-docs/man-version "$(grep -q "^\.TH .*\"$version\"" "$page" || echo "the page is not of $version")"

# ---- completion ----
# complete_words WORD...: what is offered for the last of the words
complete_words ()
{
  # shellcheck disable=SC2034,SC1090
  (
    source "$completion"
    COMP_WORDS=("$PODSIM" "$@")
    COMP_CWORD=$#
    _podsim
    printf '%s\n' "${COMPREPLY[@]}"
  )
}

# offers NAME WANTED WORD...: all of the words in WANTED, a line each, are offered
offers ()
{
  local name=$1 wanted=$2 got
  shift 2
  got=$(complete_words "$@" 2>&1)
  absent=$(missing "$wanted" "$got")
  verdict "check-docs/completion/$name" "${absent:+not offered after '$*': $absent}"
}

offers command "$list" ''
offers help "$list" help ''
offers prefix 'topology' top
for command in $list; do
  offers "$command" "$(options "$command")" "$command" --
done
offers negation '--no-overlap-dp' run --no-over
offers model 'llama3-70b' run --model llama3-7
offers model-equals 'llama3-70b' run --model = llama3-7
offers model-argument 'gpt2' model gpt
offers topology 'tpu-v5p' topology tpu-
offers topology-option 'dgx-h100' run --topology dgx-
offers fidelity "$(printf 'book\nideal\ncalibrated')" run --fidelity ''
offers fold 'off' run --fold = o
verdict check-docs/completion/registered "$(bash -c "source '$completion' && complete -p podsim" >/dev/null 2>&1 || echo 'complete -p podsim finds nothing')"
