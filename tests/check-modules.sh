#!/bin/bash
# Holds the structure of src/: includes and libraries as tests/modules.tsv allows, headers that compile alone
# and have #pragma once, private headers used by their folder only, no two files of one name.
# Prints "ok NAME" or "not ok NAME: why". Environment: POD_CC, POD_CFLAGS (from the Makefile).
set -u

cd "$(dirname "$0")/.." || exit 1
shopt -s nullglob
modules=tests/modules.tsv
cc=${POD_CC:-gcc}

sources=(src/*/*.[ch])
headers=(src/*/*.h)

# Includes: a verdict per folder. #include lines inside comments are rare enough to count, too.
awk -F '\t' '
  # The library whose header <path> is; "" for the C library and GLib
  function library_of (path)
  {
    if (path ~ /^libxml\//) return "libxml2"
    if (path ~ /^yaml\.h$/) return "libyaml"
    if (path ~ /^zlib\.h$/) return "zlib"
    if (path ~ /^yajl\//) return "yajl"
    if (path ~ /^protobuf-c\//) return "protobuf-c"
    if (path ~ /^sqlite3\.h$/) return "sqlite"
    if (path ~ /^mpi\.h$/) return "mpi"
    if (path ~ /^gsl\//) return "gsl"
    if (path ~ /^(glib|gio|gmodule|sys|linux|net|netinet|arpa)\// || path ~ /^[a-z0-9-]+\.h$/) return ""
    return path
  }
  function complain (why)
  {
    bad[folder] = bad[folder] "\n    " FILENAME ":" FNR ": " why
  }
  FILENAME == ARGV[1] {
    if ($0 !~ /^#/ && NF == 3)
      {
        known[$1] = 1
        n = split ($2, names, " ")
        for (i = 1; i <= n; i++) may[$1, names[i]] = 1
        n = split ($3, names, " ")
        for (i = 1; i <= n; i++) uses[$1, names[i]] = 1
      }
    next
  }
  FNR == 1 {
    split (FILENAME, part, "/")
    folder = part[2]
    if (!(folder in seen)) order[++n_folders] = folder
    seen[folder] = 1
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0
    sub (/^[^"]*"/, "", path)
    sub (/".*/, "", path)
    if (path !~ /\//) { if (path != "config.h") complain ("\"" path "\" needs its folder in front"); next }
    other = path
    sub (/\/.*/, "", other)
    if (other == folder) next
    if (!((folder, other) in may)) complain ("src/" folder " may not include \"" path "\"")
    if (path ~ /-private\.h$/) complain ("\"" path "\" is private to src/" other)
  }
  /^[ \t]*#[ \t]*include[ \t]*</ {
    path = $0
    sub (/^[^<]*</, "", path)
    sub (/>.*/, "", path)
    library = library_of(path)
    if (library != "" && !((folder, library) in uses)) complain ("src/" folder " may not use <" path ">")
  }
  END {
    for (i = 1; i <= n_folders; i++)
      {
        folder = order[i]
        if (!(folder in known)) print "not ok modules/" folder ": the folder is not in tests/modules.tsv"
        else if (folder in bad) print "not ok modules/" folder ": includes that the table does not allow" bad[folder]
        else print "ok modules/" folder
      }
  }' "$modules" "${sources[@]}"

# The table itself: arrows only point down, to rows above
awk -F '\t' '
  /^#/ { next }
  NF != 3 { why = why " line " FNR " has " NF " columns;" }
  {
    n = split ($2, names, " ")
    for (i = 1; i <= n; i++)
      if (names[i] != "-" && !(names[i] in above)) why = why " " $1 " names " names[i] ", which is not above it;"
    above[$1] = 1
  }
  END { print why == "" ? "ok modules.tsv" : "not ok modules.tsv:" why }' "$modules"

# One file name, one meaning: a stem belongs to one folder, so libpodsim.a has no two members of one name
twice=$(printf '%s\n' "${sources[@]}" | awk -F / '
  { stem = $3; sub (/\.[ch]$/, "", stem) }
  (stem in folder) && folder[stem] != $2 { print stem " in src/" folder[stem] " and src/" $2 }
  { folder[stem] = $2 }' | sort -u)
if [ -z "$twice" ]; then
  echo "ok file names are unique"
else
  printf 'not ok file names are unique: %s\n' "${twice//$'\n'/; }"
fi

# Prints the verdict on header $1: alone, as the first include of a file.
check_header ()
{
  local header=$1 why
  if ! grep -q '^#pragma once$' "$header"; then
    echo "not ok header $header: no #pragma once"
    return
  fi
  # eval: POD_CFLAGS quotes its -D options for a shell
  if why=$(eval "$cc $POD_CFLAGS" -Werror -fsyntax-only -include '"$header"' -x c /dev/null 2>&1); then
    echo "ok header $header"
  else
    printf 'not ok header %s: does not compile alone\n%s\n' "$header" \
      "$(printf '%s\n' "$why" | head -n 8 | sed 's/^/    /')"
  fi
}
export -f check_header
export cc
: "${POD_CFLAGS:=-std=c17 -Isrc $(pkg-config --cflags glib-2.0 libxml-2.0)}"
export POD_CFLAGS

# In parallel, each verdict to a file of its own, so that the order is that of the list
verdicts=$(mktemp -d)
trap 'rm -rf "$verdicts"' EXIT
export verdicts
if [ ${#headers[@]} -gt 0 ]; then
  # shellcheck disable=SC2016 # the inner shell expands
  printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P "$(nproc 2>/dev/null || echo 1)" \
    bash -c 'check_header "$1" >"$verdicts/${1//\//-}"' header
fi
for header in "${headers[@]}"; do
  cat "$verdicts/${header//\//-}" || echo "not ok header $header: no verdict"
done
