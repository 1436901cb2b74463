#!/bin/bash
# Holds the cost tables of topologies/libraries to their bars on the tables of workloads/measured.
# Prints "ok NAME" or "not ok NAME: why". Environment: PODSIM, SRC (from tests/run.sh).
set -u

: "${SRC:=$(cd "$(dirname "$0")/.." && pwd)}" "${PODSIM:=$SRC/build/podsim}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

"$PODSIM" validate collectives --per-row rows.tsv --json all.json >text
status=$?
if [ "$status" -ne 0 ]; then
  echo "not ok validate collectives: exit status $status"
  exit 0
fi
echo "ok validate collectives"

# Bars on the held-out half, by chip, library and operation: median 8 %, 90th percentile 20 %. Rows below 4 MiB of XLA's
# table have no bar, its permutes are reported only. Known to miss, with bars of their own:
#   XLA on NVL72 (gb200, gb300): gathers and scatters change protocol at sizes that depend on how many groups run at once,
#   and all-to-alls over 18, 36 and 72 are up to twice as slow as over 16, 32 and 64; the table does not say why.
#   H200: two rows of 8 GiB, beyond what the H100 table that its entry is fitted to has.
awk -F '\t' '
  NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  $at["half"] == "held_out" && $at["judged"] == "yes" {
    library = $at["table"] ~ /^nccl/ ? "nccl" : ($at["chip"] == "mi355x" ? "rccl" : "xla")
    error = $at["error"] + 0
    print $at["chip"] " " library " " $at["operation"] "\t" (error < 0 ? -error : error)
  }' rows.tsv | sort -t "$(printf '\t')" -k 1,1 -k 2,2g | awk -F '\t' '
  function quantile (part,  at, below)
  {
    at = part * (n - 1); below = int (at)
    return below + 1 < n ? e[below] + (at - below) * (e[below + 1] - e[below]) : e[n - 1]
  }
  function judge (  median, p90, most_median, most_p90)
  {
    if (n == 0) return
    median = quantile(0.5); p90 = quantile(0.9)
    most_median = 0.08; most_p90 = 0.20
    if (name ~ /^gb[23]00 xla all_to_all/) most_p90 = 0.34
    else if (name ~ /^gb[23]00 xla (all_gather|reduce_scatter)/) most_p90 = 0.26
    else if (name ~ /^h200 nccl/) most_median = 0.14
    printf "%sok bar %s: %d rows, median %.1f %% (bar %.0f), p90 %.1f %% (bar %.0f)\n",
      median <= most_median && p90 <= most_p90 ? "" : "not ", name, n, median * 100, most_median * 100, p90 * 100, most_p90 * 100
  }
  $1 != name { judge(); name = $1; n = 0 }
  { e[n++] = $2 + 0 }
  END { judge() }'

# No measurement beats fidelity ideal
if grep -q '^Rows that fidelity ideal is slower than: 0$' text; then
  echo "ok ideal is never slower than a measured row"
else
  echo "not ok ideal is never slower than a measured row: see podsim validate collectives"
  sed -n '/^Rows that fidelity ideal/,$p' text | head -n 20 | sed 's/^/    /'
fi

# A device that nobody fitted, from 1 MiB up: median 15 %. Fitting anew takes minutes; make validate wrote the page.
sed -n '/^<!-- leave-one-out -->$/,/^<!-- end -->$/p' "$SRC/docs/model/libraries.md" | awk '
  NF == 6 && $3 ~ /^[0-9]+$/ {
    n++
    printf "%sok unfitted %s: median %.1f %% (bar 15)\n", $4 <= 15 ? "" : "not ", $1, $4
  }
  END { if (n < 4) print "not ok unfitted devices: " n + 0 " in docs/model/libraries.md, expected 4" }'

# The keys that others script against
for key in rows_judged rows_skipped mape median_error p90_error bias mean_log_error by_source groups; do
  if grep -q "\"$key\"" all.json; then echo "ok json $key"; else echo "not ok json $key: absent"; fi
done

# One table alone, in both formats, is judged the same as among all
"$PODSIM" validate collectives --table "$SRC/workloads/measured/nccl-h100.tsv" --chip h100 --library nccl-2.27 --per-row one.tsv >one
if diff <(grep "^nccl-h100.tsv$(printf '\t')" rows.tsv) <(tail -n +2 one.tsv) >difference; then
  echo "ok one table"
else
  echo "not ok one table: differs from the same rows among all"
fi

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
printf 'op\tgpus\nx\t1\n' >columns.tsv
printf 'op\tdtype\tgpus\tbytes\tlatency_us\nall_gather\thalf\t8\t1024\t-1\n' >negative.tsv
refused 'no such kind' "validate what?" validate networks
refused 'table without chip' '--table and --chip' validate collectives --table columns.tsv
refused 'columns' 'columns.tsv:1: expected the columns' validate collectives --table columns.tsv --chip h100
refused 'negative time' 'negative.tsv:2: ' validate collectives --table negative.tsv --chip h100
refused 'torus' 'no scale-up domain' validate collectives --table negative.tsv --chip tpu-v5e
refused 'library' "unknown library 'mpi'" collective --topology h100:8 --kind all_reduce --library mpi
refused 'protocol' "unknown protocol 'fast'" collective --topology h100:8 --kind all_reduce --algorithm ring/fast
refused 'calibrate without a table' '--table is missing' calibrate collectives

# A fit is reproducible to the byte, and starts a file when there is none
fit ()
{
  head -n 110 "$SRC/workloads/measured/nccl-a100.tsv" >some.tsv
  "$PODSIM" calibrate collectives --table some.tsv --chip a100 --library "$SRC/topologies/libraries/templates/rccl.xml" --common --write "$1"
}
if fit one.xml >out && fit two.xml >out && cmp -s one.xml two.xml && fit two.xml >out && cmp -s one.xml two.xml; then
  echo "ok a fit is reproducible"
else
  echo "not ok a fit is reproducible: two runs differ"
fi

# The page shows what the program says today
if PODSIM=$PODSIM "$SRC/build-aux/validate.sh" --check >difference 2>&1; then
  echo "ok docs/model/libraries.md"
else
  echo "not ok docs/model/libraries.md: make validate changes it"
  head -n 5 difference | sed 's/^/    /'
fi
