#!/bin/bash
# Runs what README.md and docs/ show, and follows their links. A document's commands run in order in one scratch
# folder, so that a later one may read what an earlier one wrote.
#
#   ```sh              each line that starts with "podsim " or "build/podsim " (NAME=VALUE may stand before it; a
#                      "\" at the end goes on) is run and must exit 0, or N where it ends with "# exits N".
#                      Other lines are not run.
#   ```xml FILE        a fence with a file's name (any language but text) is written to that file first
#   ```text output     what the command above it printed; output=8-16 are lines 8 to 16 of it, stderr= is stderr.
#                      UPDATE=1 writes them anew. Other text fences are not compared.
#   [words](path)      a relative link must lead to a file; links within fences are not looked at
#
# The pages of docs/format must name every element and attribute of their schemas,
# docs/guide/results.md every key that the JSON of its own commands has.
#
# Prints "ok FILE:LINE command" or "not ok FILE:LINE command: why". Environment, from tests/run.sh: SRC (source
# tree), PODSIM (program), UPDATE; the scratch folders are made in the working folder. Alone:
#
#   tests/check-guide.sh [FILE.md...]       in a folder of its own, with build/podsim
set -uo pipefail

if [ -z "${SRC:-}" ]; then
  SRC=$(cd "$(dirname "$0")/.." && pwd)
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/podsim-guide.XXXXXX") || exit 1
  trap 'rm -rf "$scratch"' EXIT
  cd "$scratch" || exit 1
fi
PODSIM=${PODSIM:-$SRC/build/podsim}
UPDATE=${UPDATE:-}
export SRC PODSIM LC_ALL=C
unset PODSIM_PATH
top=$PWD

# Verdict on $where and $command; what follows is shown under it.
not_ok ()
{
  printf 'not ok %s %s: %s\n' "$where" "$command" "$1"
}

# Runs $command in the scratch folder of the document; leaves stdout and stderr in $top.
run ()
{
  local status=0 wanted=0 words=$command
  if [[ $words =~ \#\ exits\ ([0-9]+)$ ]]; then
    wanted=${BASH_REMATCH[1]}
  fi
  # The program by its variable, whatever name stands there
  [[ $words =~ $is_command ]] && words="${BASH_REMATCH[1]}\"\$PODSIM\" ${words#"${BASH_REMATCH[0]}"}"
  (cd "$folder" && bash -c "set -o pipefail; $words") >"$top/stdout" 2>"$top/stderr" </dev/null || status=$?
  is_good=
  if [ "$status" -eq "$wanted" ]; then
    is_good=yes
    printf 'ok %s %s\n' "$where" "$command"
  else
    not_ok "exit status $status instead of $wanted"
    tail -n 20 "$top/stderr" | sed 's/^/    /'
  fi
}

# Compares the fence, which is in $top/shown, with what the last command printed.
compare ()
{
  local stream=stdout range
  [[ $info == *" stderr"* ]] && stream=stderr
  range=$(sed -n 's/.*\(output\|stderr\)=\([0-9]*\)-\([0-9]*\).*/\2,\3/p' <<<"$info")
  # No path of this machine: $SRC/workloads/... is shown as workloads/...
  sed -e "s|${SRC//|/\\|}/||g" "$top/$stream" | sed -n "${range:-1,\$}p" >"$top/got"
  if [ -n "$UPDATE" ] && [ -n "$is_good" ]; then
    cat "$top/got" >>"$top/new"
    return
  fi
  cat "$top/shown" >>"$top/new"
  if cmp -s "$top/shown" "$top/got"; then
    printf 'ok %s output of %s\n' "$where" "$command"
  else
    not_ok "prints something else (UPDATE=1 writes it anew)"
    diff -u --label shown --label got "$top/shown" "$top/got" | sed 's/^/    /'
  fi
}

is_command='^(([A-Z_]+=[^ ]+ +)*)(build/)?podsim '

# One document: commands, files, outputs.
document ()
{
  local file=$1 line n=0 is_good='' fence='' info='' target='' command='' where='' part=''
  folder=$top/$(tr '/' '-' <<<"${file%.md}")
  # build/run is where `make run` writes
  mkdir -p "$folder/build/run"
  : | tee "$top/new" "$top/stdout" "$top/stderr"
  while IFS= read -r line || [ -n "$line" ]; do
    n=$((n + 1))
    if [[ $line == '```'* ]] && [ -z "$fence" ]; then
      info=${line#\`\`\`}
      fence=${info%% *}
      fence=${fence:-none}
      target=''
      if [ "$fence" != text ] && [[ $info == *' '* ]]; then
        target=$folder/${info##* }
        mkdir -p "$(dirname "$target")"
        : >"$target"
      fi
      : >"$top/shown"
      printf '%s\n' "$line" >>"$top/new"
      where=$file:$n
      continue
    fi
    if [[ $line == '```' ]] && [ -n "$fence" ]; then
      if [[ $info == 'text output'* || $info == 'text stderr'* ]]; then
        compare
      fi
      fence=''
      printf '%s\n' "$line" >>"$top/new"
      continue
    fi
    if [[ -n $fence && ($info == 'text output'* || $info == 'text stderr'*) ]]; then
      printf '%s\n' "$line" >>"$top/shown"
      continue
    fi
    printf '%s\n' "$line" >>"$top/new"
    [ -z "$target" ] || printf '%s\n' "$line" >>"$target"
    if [ "$fence" = sh ]; then
      # A command may go on over several lines; its number is that of the first
      if [ -z "$part" ]; then
        where=$file:$n
        command=''
      fi
      if [[ $line == *\\ ]]; then
        part="$part${line%\\} "
        continue
      fi
      command=$part$line
      while [[ $command == *"  "* ]]; do
        command=${command//  / }
      done
      part=''
      if [[ $command =~ $is_command ]]; then
        run
      fi
    fi
  done <"$SRC/$file"
  if [ -n "$UPDATE" ] && ! cmp -s "$top/new" "$SRC/$file"; then
    cp "$top/new" "$SRC/$file"
  fi
}

# Every relative link outside fences leads to a file; one verdict a document.
links ()
{
  local file=$1 folder target n bad=''
  folder=$(dirname "$SRC/$file")
  while IFS=$'\t' read -r n target; do
    target=${target%%#*}
    case $target in '' | *://* | mailto:*) continue ;; esac
    [ -e "$folder/$target" ] || bad="$bad"$'\n'"    $file:$n: $target"
  done < <(awk '
    /^```/ { inside = !inside; next }
    inside { next }
    {
      rest = $0
      while (match (rest, /\]\([^) ]+/)) {
        print NR "\t" substr (rest, RSTART + 2, RLENGTH - 2)
        rest = substr (rest, RSTART + RLENGTH)
      }
    }' "$SRC/$file")
  if [ -z "$bad" ]; then
    printf 'ok %s links\n' "$file"
  else
    printf 'not ok %s links: lead nowhere%s\n' "$file" "$bad"
  fi
}

# The page of a format names every element and attribute of its schema.
schema ()
{
  local page=$1 xsd=$2 name missing=''
  while read -r name; do
    grep -qF "\`$name\`" "$SRC/$page" || missing="$missing $name"
  done < <(grep -oE '<xs:(element|attribute) name="[^"]+"' "$SRC/$xsd" | sed 's/.*"\(.*\)"/\1/' | sort -u)
  if [ -z "$missing" ]; then
    printf 'ok %s names all of %s\n' "$page" "$xsd"
  else
    printf 'not ok %s: %s has also:%s\n' "$page" "$xsd" "$missing"
  fi
}

# The page of results names every key of the results that its commands wrote.
keys ()
{
  local page=docs/guide/results.md name missing='' n=0
  while read -r name; do
    n=$((n + 1))
    grep -qw -- "$name" "$SRC/$page" || missing="$missing $name"
  done < <(cat "$top/docs-guide-results"/*.json | grep -oE '"[a-z0-9_]+":' | tr -d '":' | sort -u)
  if [ "$n" -gt 0 ] && [ -z "$missing" ]; then
    printf 'ok %s names all keys of a result\n' "$page"
  else
    printf 'not ok %s: of %s keys it does not name:%s\n' "$page" "$n" "$missing"
  fi
}

# README's pictures are those that its command drew. The bytes of a .png hang on the version of gnuplot, so the .svg
# is compared alone.
pictures ()
{
  local drawn=$top/README/build/run
  if [ -n "$UPDATE" ]; then
    cp "$drawn/timeline.svg" "$drawn/breakdown.png" "$drawn/search-memory.png" "$drawn/search-best.png" "$SRC/docs/pictures/"
  elif cmp -s "$drawn/timeline.svg" "$SRC/docs/pictures/timeline.svg"; then
    echo 'ok docs/pictures/timeline.svg'
  else
    echo 'not ok docs/pictures/timeline.svg: is not what the command of README.md draws (UPDATE=1 copies it)'
  fi
}

if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(cd "$SRC" && find README.md CHANGELOG.md docs -name '*.md' | sort)
fi
for file in "${files[@]}"; do
  file=${file#"$SRC"/}
  document "$file"
  links "$file"
done
if [ $# -eq 0 ]; then
  schema docs/format/topology.md topologies/topology.xsd
  schema docs/format/chip.md topologies/chips/chip.xsd
  schema docs/format/model.md workloads/models/model.xsd
  schema docs/format/workload.md workloads/workload.xsd
  keys
  pictures
fi
