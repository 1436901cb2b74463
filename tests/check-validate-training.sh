#!/bin/bash
# podsim validate training and memory: every twelfth judged row of each table of workloads/measured is run, the
# figures that are printed are those of the rows (recomputed here by awk), and neither the order nor the number of
# threads shows. Prints "ok NAME" or "not ok NAME: why". Environment: PODSIM, SRC (from tests/run.sh).
set -u

: "${SRC:=$(cd "$(dirname "$0")/.." && pwd)}" "${PODSIM:=$SRC/build/podsim}"
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
measured=$SRC/workloads/measured

# $1: which of twelve; comments and heading stay
every_twelfth ()
{
  awk -F '\t' -v part="$1" '/^#/ || !heading { print; if (!/^#/) heading = 1; next } $2 == "y" && n++ % 12 == part' "$2"
}
every_twelfth 3 "$measured/training.tsv" >some.tsv
n=$(awk -F '\t' '$2 == "y"' some.tsv | wc -l)

if ! "$PODSIM" validate training --table some.tsv --jobs 1 --per-row one.tsv --json one.json >one; then
  echo "not ok validate training: exit status $?"
  exit 0
fi
echo "ok validate training"

"$PODSIM" validate training --table some.tsv --jobs 3 --per-row two.tsv --json two.json >two
if cmp -s one two && cmp -s one.tsv two.tsv && cmp -s one.json two.json; then
  echo "ok validate training: the same with three threads"
else
  echo "not ok validate training: differs with three threads"
fi

# one KEY FILE: the first number under a key of JSON
number ()
{
  sed -n "s/^ *\"$1\": \([-0-9.e+]*\),*$/\1/p" "$2" | head -n 1
}

# same NAME A B: two numbers agree to 1e-4, the errors of the rows have four decimals
same ()
{
  if awk -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d < 1.1e-4 && d > -1.1e-4) }'; then
    echo "ok $1"
  else
    echo "not ok $1: $2 in JSON, $3 from the rows"
  fi
}

# Figures of a column of errors: rows mape bias median p90
figures ()
{
  sort -g | awk '
    function quantile (part,  at, below)
    {
      at = part * (n - 1); below = int (at)
      return below + 1 < n ? e[below] + (at - below) * (e[below + 1] - e[below]) : e[n - 1]
    }
    { e[n++] = $1; mape += $1; bias += $2 }
    END { print n + 0, mape / n, bias / n, quantile(0.5), quantile(0.9) }'
}
errors ()
{
  awk -F '\t' -v measured="$1" -v predicted="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    ($at["counted"] == "yes" || $at["counted"] == "no: spread over 20 %" && measured == "measured_bytes") \
      && $at[measured] != "NA" && $at["source"] != "act-recompute-t5" || measured == "measured_s" && $at["counted"] == "yes" {
      error = $at[predicted] / $at[measured] - 1
      print (error < 0 ? -error : error), error
    }' "$3"
}
read -r rows mape bias median p90 < <(errors measured_s predicted_s one.tsv | figures)
same "rows_judged" "$(number rows_judged one.json)" "$rows"
same "mape" "$(number mape one.json)" "$mape"
same "bias" "$(number bias one.json)" "$bias"
same "median_error" "$(number median_error one.json)" "$median"
same "p90_error" "$(number p90_error one.json)" "$p90"

# Every row has its line, run or not, and what is not run says why
lines=$(($(wc -l <one.tsv) - 1))
if [ "$lines" -eq "$n" ] && [ "$(number rows one.json)" = "$n" ]; then
  echo "ok a line for each of $n judged rows"
else
  echo "not ok a line for each judged row: $lines of $n"
fi
skipped=$(awk -F '\t' '$4 ~ /^no: / && $4 !~ /spread/' one.tsv | wc -l)
listed=$(sed -n '/"rows_skipped": \[/,/\]/p' one.json | grep -c '^ *"[A-Z].*: ')
if [ "$skipped" -eq "$listed" ]; then
  echo "ok rows_skipped: $listed, each with its reason"
else
  echo "not ok rows_skipped: $listed listed, $skipped without a prediction"
fi

# A row's options repeat its run
options=$(awk -F '\t' 'NR > 1 && $4 == "yes" { print $NF; exit }' one.tsv)
predicted=$(awk -F '\t' 'NR > 1 && $4 == "yes" { print $10; exit }' one.tsv)
eval "$PODSIM run $options --json run.json" >/dev/null
if grep -q "\"time_s\": $predicted," run.json; then
  echo "ok a row's options repeat its run"
else
  echo "not ok a row's options repeat its run: $(grep -m 1 '"time_s"' run.json), the row has $predicted"
fi

# The peak of the same runs, where it was measured
awk -F '\t' '/^#/ || !heading { print; if (!/^#/) heading = 1; next }
  $2 == "y" && ($9 == "bloom-prequel" || $9 ~ /^torchtitan/ || $9 ~ /^act/) && n++ % 9 == 2' "$measured/training.tsv" >memory.tsv
"$PODSIM" validate memory --table memory.tsv --per-row memory.rows --json memory.json >memory.txt
read -r rows mape bias median p90 < <(errors measured_bytes predicted_bytes memory.rows | figures)
same "memory rows_judged" "$(number rows_judged memory.json)" "$rows"
same "memory mape" "$(number mape memory.json)" "$mape"
same "memory median_error" "$(number median_error memory.json)" "$median"

# At ideal no row is slower than measured
"$PODSIM" validate training --table some.tsv --fidelity ideal >ideal
if grep -q '^0 rows are faster than fidelity ideal$' ideal; then
  echo "ok ideal is never slower than a measured step"
else
  echo "not ok ideal is never slower than a measured step: $(grep 'ideal [0-9.]* s$' ideal | head -n 3 | tr '\n' ' ')"
fi

# Rows that are not judged come with --all-rows; a chip takes its rows only
awk -F '\t' '/^#/ || !heading { print; if (!/^#/) heading = 1; next } n++ % 150 == 4' "$measured/training.tsv" >mixed.tsv
all=$(grep -vc '^#' mixed.tsv)
"$PODSIM" validate training --table mixed.tsv --all-rows --json all.json >/dev/null
if [ "$(number rows all.json)" -eq $((all - 1)) ]; then
  echo "ok --all-rows"
else
  echo "not ok --all-rows: $(number rows all.json) of $((all - 1)) rows"
fi
"$PODSIM" validate training --table some.tsv --chip tpu-v5e --per-row tpu.tsv >/dev/null
if [ "$(cut -f 6 tpu.tsv | sed 1d | grep -vc '^tpu-v5e:')" -eq 0 ] && [ "$(wc -l <tpu.tsv)" -gt 1 ]; then
  echo "ok --chip"
else
  echo "not ok --chip: $(cut -f 6 tpu.tsv | sort -u | tr '\n' ' ')"
fi

for key in rows_judged rows_skipped rows_reported mape median_error p90_error bias mean_log_error by_source step_time mfu memory; do
  if grep -q "\"$key\"" one.json; then echo "ok json $key"; else echo "not ok json $key: absent"; fi
done

# refused NAME PART ARGUMENT...: exit 2 and one line that has PART
refused ()
{
  local name=$1 part=$2 status=0
  shift 2
  "$PODSIM" "$@" >out 2>err || status=$?
  if [ "$status" -eq 2 ] && grep -qF -- "$part" err && [ "$(wc -l <err)" -eq 1 ]; then
    echo "ok refused $name"
  else
    echo "not ok refused $name: exit status $status, $(head -n 1 err)"
  fi
}
printf 'id\tjudged\nX1\ty\n' >columns.tsv
{ grep -v '^#' some.tsv | head -n 1; printf 'X1\ty\n'; } >short.tsv
: >empty.tsv
refused 'columns' 'columns.tsv:1: the column why_not is missing' validate training --table columns.tsv
refused 'a short row' 'short.tsv:2: 2 cells, expected' validate training --table short.tsv
refused 'an empty table' 'empty.tsv:1: the table is empty' validate memory --table empty.tsv
refused 'no row of a chip' 'has no row to judge of gaudi3' validate training --table some.tsv --chip gaudi3
refused 'no threads' '--jobs: must be 1 to 4096' validate training --table some.tsv --jobs 0
refused 'an option of collectives' '--library: not for' validate training --library rccl
refused 'an option of training' '--all-rows: not for' validate collectives --all-rows
refused 'no such kind' 'validate what?' validate serving
