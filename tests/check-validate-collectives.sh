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

# Bars on the held-out half, by chip, library and operation: median 8 %, 90th percentile 20 %; permutes are reported only. Known
# to miss, with a bar of its own:
#   H200: two rows of 8 GiB, of which that over 5 GPUs went by the switch and is predicted as a ring.
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
    if (name ~ /^h200 nccl/) most_median = 0.10
    printf "%sok bar %s: %d rows, median %.1f %% (bar %.0f), p90 %.1f %% (bar %.0f)\n",
      median <= most_median && p90 <= most_p90 ? "" : "not ", name, n, median * 100, most_median * 100, p90 * 100, most_p90 * 100
  }
  $1 != name { judge(); name = $1; n = 0 }
  { e[n++] = $2 + 0 }
  END { judge() }'

# Rows below 4 MiB of XLA's table: median 8 %, or what a row's two neighbours in size say of it where that is more, for there
# the table is noise. Known to miss, with bars of their own:
#   MI355X, H100, B200: groups whose times fall and rise by a third from size to size, so that half of the rows, which a fit
#   sees, say little of the other half.
#   NVL72: all-to-alls over the 4 GPUs of a tray take 22 us, over 8 of two trays 12.
awk -F '\t' '
  NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  $at["table"] ~ /^xla/ && $at["operation"] != "collective_permute" && $at["bytes"] < 8388608 {
    odd = $at["bytes"]
    while (odd % 2 == 0) odd /= 2
    print $at["chip"] " " $at["operation"] "\t" $at["dtype"] " " $at["ranks"] " " odd "\t" $at["bytes"] "\t" $at["measured_us"] "\t" $at["error"]
  }' rows.tsv | sort -t "$(printf '\t')" -k 1,1 -k 2,2 -k 3,3n | awk -F '\t' '
  function abs (x) { return x < 0 ? -x : x }
  function median (list, n,  i, j, x)
  {
    for (i = 1; i < n; i++)
      for (j = i; j > 0 && list[j - 1] > list[j]; j--) { x = list[j]; list[j] = list[j - 1]; list[j - 1] = x }
    return n % 2 ? list[(n - 1) / 2] : (list[n / 2 - 1] + list[n / 2]) / 2
  }
  function judge (  miss, noise, most, what)
  {
    if (n == 0) return
    miss = median(e, n); noise = median(d, m)
    most = noise > 0.08 ? noise : 0.08
    what = "bar"
    # Over the bar of 8 % and their own noise: what they miss by is held, so that it grows no further
    if (name ~ /^(mi355x all_gather|mi355x all_to_all|gb[23]00 all_to_all|b200 all_to_all|h100 all_reduce|h100 reduce_scatter)$/) what = "misses the bar of 8, held at"
    if (name == "mi355x all_gather" || name == "mi355x all_to_all") most = 0.15
    else if (name ~ /^gb[23]00 all_to_all/) most = 0.11
    else if (name == "b200 all_to_all") most = 0.14
    else if (name == "h100 all_reduce") most = 0.19
    else if (name == "h100 reduce_scatter") most = 0.27
    printf "%sok below 4 MiB %s: %d rows, median %.1f %% (%s %.1f; neighbours %.1f)\n",
      miss <= most ? "" : "not ", name, n, miss * 100, what, most * 100, noise * 100
  }
  $1 != name { judge(); name = $1; n = 0; m = 0 }
  {
    if (curve == $1 $2 && before != "" && last < 4194304) d[m++] = abs(sqrt(before * $4) / here - 1)
    before = curve == $1 $2 ? here : ""; here = $4; last = $3; curve = $1 $2
    if ($3 < 4194304) e[n++] = abs($5)
  }
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
