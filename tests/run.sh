#!/bin/bash
# Runs the tests, prints what fails, and ends with "N passed, N failed". `make check` calls it; so may you,
# after a build: BUILD=build tests/run.sh [WORD...] takes only tests whose path contains one of the words.
#
#   tests/unit/test-*.c, tests/model/test-*.c   Check programs; each of their test cases counts
#   tests/fuzz/fuzz-*.c                         fuzz targets over tests/fuzz/corpus/NAME/*
#   tests/cli/*.test                            golden tests, see golden_test below
#   tests/tables/*.tsv                          one row one test, see tests/tools/table-check.c
#   tests/check-*.sh                            scripts that print "ok NAME" or "not ok NAME: why"
#   tests/browser/run.sh                        the same, alone with --browser
#
# Every test runs in an empty folder, with $SRC (source tree), $BUILD, $PODSIM, stdin empty, locale C.
# Output is in the order of the list, whatever the number of cores. Nothing here judges a time; the limit
# TEST_TIMEOUT_S only ends what hangs.
set -u

SRC=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(cd "$SRC" && cd "${BUILD:-build}" && pwd) || exit 1
PODSIM=$BUILD/podsim
UPDATE=${UPDATE:-}
V=${V:-}
SANITIZE=${SANITIZE:-}
TEST_TIMEOUT_S=${TEST_TIMEOUT_S:-900}
export SRC BUILD PODSIM UPDATE V SANITIZE TEST_TIMEOUT_S

# ---- one test: the worker, `run.sh --one KIND FILE RESULT` ----

# Prints a verdict and, indented, the lines of file $3 that explain it.
not_ok ()
{
  printf 'not ok %s: %s\n' "$1" "$2"
  if [ $# -gt 2 ] && [ -s "$3" ]; then
    head -n 60 "$3" | sed 's/^/    /'
  fi
}

limited ()
{
  timeout -k 10 "$TEST_TIMEOUT_S" "$@" </dev/null
}

# How a program ended, in words.
ending ()
{
  case $1 in
    124) echo "did not end within $TEST_TIMEOUT_S s" ;;
    99) echo "a sanitizer reported an error" ;;
    12[89] | 1[3-9]? | 2??) echo "ended by signal $(($1 - 128))" ;;
    *) echo "exit status $1" ;;
  esac
}

# A Check program: "100%: Checks: 12, Failures: 0, Errors: 0", a line per suite runner.
check_program ()
{
  local source=$1 name program status=0
  name=${source#tests/}
  name=${name%.c}
  program=$BUILD/tests/$name
  if [ ! -x "$program" ]; then
    not_ok "$name" "was not built"
    return
  fi
  limited "$program" >"$WORK/log" 2>&1 || status=$?
  awk -v name="$name" '
    match ($0, /[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+/) {
      split (substr ($0, RSTART, RLENGTH), part, /[^0-9]+/)
      checks += part[2]; bad += part[3] + part[4]
    }
    END {
      for (i = 1; i <= checks - bad; i++) print "ok " name "/" i
      for (i = 1; i <= bad; i++) print "not ok " name ": a test case failed"
      exit checks == 0 ? 2 : bad > 0
    }' "$WORK/log"
  case $? in
    0) [ "$status" -eq 0 ] || not_ok "$name" "every test case passed, then: $(ending "$status")" "$WORK/log" ;;
    1) head -n 100 "$WORK/log" | sed 's/^/    /' ;;
    *) not_ok "$name" "no count of test cases; $(ending "$status")" "$WORK/log" ;;
  esac
}

fuzz_target ()
{
  local source=$1 name status=0
  name=$(basename "$source" .c)
  set -- "$SRC/tests/fuzz/corpus/$name"/*
  if [ ! -e "$1" ]; then
    not_ok "$name" "has no corpus in tests/fuzz/corpus/$name"
    return
  fi
  if [ ! -x "$BUILD/tests/fuzz/$name" ]; then
    not_ok "$name" "was not built"
    return
  fi
  limited "$BUILD/tests/fuzz/$name" "$@" >"$WORK/log" 2>"$WORK/err" || status=$?
  grep -E '^(not )?ok ' "$WORK/log"
  if [ "$status" -ne 0 ]; then
    not_ok "$name" "$(ending "$status") after $(tail -n 1 "$WORK/log")" "$WORK/err"
  fi
}

# A golden test, tests/cli/NAME.test. Lines, run in order in one empty folder ('#' starts a comment):
#   env: NAME=VALUE     for all that follows
#   args: WORDS         runs podsim with them; shell quoting, $SRC and redirections work
#   shell: COMMAND      runs any command; $PODSIM is the program
#   cat: FILE           adds a file that was written to what is compared with NAME.out
#   status: N           of the args or shell line above; 0 unless given
#   stdout: ignore      or stderr: ignore; else they must be equal to NAME.out and NAME.err,
#                       no such file meaning no output
# The paths of the source tree and of the scratch folder are written $SRC and $SCRATCH in golden files.
# UPDATE=1 writes them.
golden_test ()
{
  local file=$1 name=${1#tests/} line key value last="" status=0 wanted=0 stdout="" stderr="" problem=""
  local out=$WORK/stdout err=$WORK/stderr
  name=${name%.test}
  : >"$out"
  : >"$err"

  judge_status ()
  {
    if [ -n "$last" ] && [ "$status" -ne "$wanted" ]; then
      problem=${problem:-"$(ending "$status") instead of $wanted: $last"}
    fi
  }

  mkdir "$WORK/in" && cd "$WORK/in" || exit 1
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '' | '#'*) continue ;; esac
    key=${line%%:*}
    value=${line#*:}
    value=${value# }
    case $key in
      env)
        export "${value?}"
        ;;
      args | shell)
        judge_status
        last=$value status=0 wanted=0
        [ "$key" = shell ] || value="\"\$PODSIM\" $value"
        limited bash -fc "$value" >>"$out" 2>>"$err" || status=$?
        ;;
      cat)
        cat "$value" >>"$out" 2>>"$err" || problem=${problem:-"$value was not written"}
        ;;
      status) wanted=$value ;;
      stdout | stderr)
        if [ "$value" = ignore ]; then
          eval "$key=ignore"
        fi
        ;;
      *) problem="unknown line: $line" ;;
    esac
  done <"$SRC/$file"
  judge_status
  [ -n "$last" ] || problem="no args and no shell line"

  [ "$stdout" = ignore ] || compare_golden "$out" "$SRC/${file%.test}.out" || problem=${problem:-"stdout differs"}
  [ "$stderr" = ignore ] || compare_golden "$err" "$SRC/${file%.test}.err" || problem=${problem:-"stderr differs"}
  if [ -n "$problem" ]; then
    # Of an unexpected status the message is what one wants to see
    [ -s "$WORK/diff" ] || tail -n 20 "$err" >"$WORK/diff"
    not_ok "$name" "$problem" "$WORK/diff"
  else
    echo "ok $name"
  fi
}

# $1: what was printed, $2: the golden file, which need not exist. Adds differences to $WORK/diff.
compare_golden ()
{
  local src=${SRC//|/\\|} scratch=${WORK//|/\\|}
  sed -e "s|$src|\$SRC|g" -e "s|$scratch/in|\$SCRATCH|g" "$1" >"$1.shown"
  if [ -n "$UPDATE" ]; then
    if [ -s "$1.shown" ]; then
      cmp -s "$1.shown" "$2" || cp "$1.shown" "$2"
    else
      rm -f "$2"
    fi
    return 0
  fi
  if [ -e "$2" ]; then
    set -- "$1" "$2"
  else
    set -- "$1" /dev/null
  fi
  diff -u --label expected --label got "$2" "$1.shown" >>"$WORK/diff"
}

table ()
{
  local status=0 name
  name=${1#tests/}
  name=${name%.tsv}
  mkdir "$WORK/in"
  "$BUILD/tests/table-check" "$PODSIM" "$SRC" "$WORK/in" "$SRC/$1" >"$WORK/log" 2>"$WORK/err" </dev/null || status=$?
  sed -E 's|^(not ok\|ok) |\1 tables/|' "$WORK/log"
  if [ "$status" -ne 0 ]; then
    not_ok "$name" "table-check: $(ending "$status")" "$WORK/err"
  elif [ ! -s "$WORK/log" ]; then
    not_ok "$name" "has no rows"
  fi
}

script ()
{
  local status=0 name
  name=${1#tests/}
  mkdir "$WORK/in" && cd "$WORK/in" || exit 1
  limited bash "$SRC/$1" >"$WORK/log" 2>"$WORK/err" || status=$?
  cat "$WORK/log"
  if ! grep -qE '^(not )?ok ' "$WORK/log"; then
    not_ok "$name" "printed no verdict; $(ending "$status")" "$WORK/err"
  elif [ "$status" -ne 0 ] && ! grep -q '^not ok ' "$WORK/log"; then
    not_ok "$name" "$(ending "$status")" "$WORK/err"
  elif grep -q '^not ok ' "$WORK/log"; then
    head -n 60 "$WORK/err" | sed 's/^/    /'
  fi
}

if [ "${1:-}" = --one ]; then
  WORK=$4.d
  mkdir -p "$WORK/tmp" || exit 1
  export TMPDIR=$WORK/tmp
  cd "$WORK" || exit 1
  "$2" "$3" >"$4" 2>&1
  cd / && rm -rf "$WORK"
  exit 0
fi

# ---- all tests ----

scratch=$(mktemp -d "${TMPDIR:-/tmp}/podsim-check.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

unset PODSIM_PATH
export LC_ALL=C
# What limits a test is TEST_TIMEOUT_S, not Check's four seconds a case, which a busy machine takes for one
export CK_DEFAULT_TIMEOUT=0 CK_TIMEOUT_MULTIPLIER=20
# Internal self-checks on; a GLib critical is a bug even where the program lives on
export POD_CHECK=1 G_DEBUG=fatal-criticals
if [ -n "$SANITIZE" ]; then
  # No fork, so that leaks show in the process that leaks; no slice allocator, so that they show at all
  supp=$SRC/tests/tools
  export CK_FORK=no G_SLICE=always-malloc
  export ASAN_OPTIONS=exitcode=99:detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
  export LSAN_OPTIONS=exitcode=99:print_suppressions=0:suppressions=$supp/lsan.supp${LSAN_OPTIONS:+:$LSAN_OPTIONS}
  export UBSAN_OPTIONS=exitcode=99:print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
  export TSAN_OPTIONS=exitcode=99:halt_on_error=1:suppressions=$supp/tsan.supp${TSAN_OPTIONS:+:$TSAN_OPTIONS}
fi

cd "$SRC" || exit 1
shopt -s nullglob
LC_COLLATE=C
if [ "${1:-}" = --browser ]; then
  shift
  files=(tests/browser/run.sh)
else
  files=(tests/unit/test-*.c tests/model/test-*.c tests/fuzz/fuzz-*.c tests/cli/*.test tests/tables/*.tsv
         tests/check-*.sh)
fi

kind_of ()
{
  case $1 in
    tests/fuzz/*) echo fuzz_target ;;
    *.c) echo check_program ;;
    *.test) echo golden_test ;;
    *.tsv) echo table ;;
    *) echo script ;;
  esac
}

wanted ()
{
  local file=$1
  shift
  [ $# -gt 0 ] || return 0
  for word; do
    [ "${file/"$word"/}" = "$file" ] || return 0
  done
  return 1
}

n=0
results=()
for file in "${files[@]}"; do
  wanted "$file" "$@" || continue
  n=$((n + 1))
  result=$scratch/$(printf '%05d' "$n")
  results+=("$result")
  printf '%s\0%s\0%s\0' "$(kind_of "$file")" "$file" "$result"
done >"$scratch/list"

xargs -0 -n 3 -P "$(nproc 2>/dev/null || echo 1)" "$BASH" "$SRC/tests/run.sh" --one <"$scratch/list"

# A worker that died without a result is a failure
for result in "${results[@]}"; do
  if [ -s "$result" ]; then
    cat "$result"
  else
    echo "not ok: a test left no verdict"
  fi
done >"$scratch/all"

# Failures with their details; everything when V=1
awk -v all="$V" '
  /^ok / { show = 0; if (all) print; next }
  /^not ok/ { show = 1 }
  show || all { print }' "$scratch/all"
passed=$(grep -c '^ok ' "$scratch/all")
failed=$(grep -c '^not ok' "$scratch/all")
# No test at all is no success
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then
  echo "not ok: no test found"
  failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
