#!/bin/bash
# Broken and hostile input, and outputs that cannot be written: every refusal has the exit status of
# base/error.h, exactly one line on stderr that says where and what, nothing on stdout, and leaves no
# file behind. Prints "ok NAME" or "not ok NAME: why"; run by tests/run.sh in an empty folder, or by
# hand: PODSIM=build/podsim tests/check-bad-input.sh [WORD] (only names that contain WORD).
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
PODSIM=${PODSIM:-$SRC/build/podsim}
SANITIZE=${SANITIZE:-}
only=${1:-}
may_print= # set where results may stand on stdout before the failure
limit_s=120 # only ends what hangs
unset PODSIM_PATH

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir out in
result=0

verdict ()
{
  if [ -z "$2" ]; then
    echo "ok $1"
  else
    echo "not ok $1: $2"
    result=1
  fi
}

is_wanted ()
{
  [[ $1 == *"$only"* ]]
}

# What stands in the folder out, and temporary files anywhere.
left_behind ()
{
  find out -mindepth 1 | LC_ALL=C sort | head -n 5 | tr '\n' ' '
  find . -name '.podsim-*' | head -n 5 | tr '\n' ' '
}

podsim ()
{
  timeout -k 5 "$limit_s" "$PODSIM" "$@" >stdout 2>stderr </dev/null
}

# $1: wanted status (ERE), $2: the status it was, $3: what the one line must match (ERE). Prints what is wrong.
judge ()
{
  local n_lines line left
  n_lines=$(wc -l <stderr)
  IFS= read -r line <stderr
  if [ "$2" -eq 124 ] || [ "$2" -eq 137 ]; then
    echo "hangs"
  elif ! [[ $2 =~ ^$1$ ]]; then
    echo "exit status $2 instead of $1: ${line:0:300}"
  elif [ "$n_lines" -ne 1 ] || [ -n "$(tail -c 1 stderr)" ]; then
    echo "$n_lines lines on stderr: ${line:0:300}"
  elif ! [[ $line =~ $3 ]]; then
    echo "stderr does not match '$3': ${line:0:300}"
  elif [ "${#line}" -gt 2000 ]; then
    echo "a line of ${#line} bytes on stderr: ${line:0:100}"
  elif LC_ALL=C grep -q '[[:cntrl:]]' stderr; then
    echo "control bytes on stderr"
  elif [ -s stdout ] && [ -z "$may_print" ]; then
    echo "stdout: $(head -c 100 stdout | head -n 1)"
  else
    left=$(left_behind)
    [ -z "$left" ] || echo "left behind: $left"
  fi
}

# refused NAME STATUS PATTERN WORDS...: podsim with these words; PATTERN follows "podsim: ".
refused ()
{
  local name=$1 wanted=$2 pattern=$3 status=0
  shift 3
  is_wanted "$name" || return 0
  podsim "$@" || status=$?
  verdict "$name" "$(judge "$wanted" "$status" "^podsim: $pattern")"
  rm -rf out && mkdir out
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

# ---- each reader: read_KIND FILE; good-KIND is a file that it takes ----

read_topology () { refused_run "$1" "$2" "$3" --topology "$4"; }
read_chip () { refused "$1" "$2" "$3" topology "$4:2x2x2" --json out/r.json --svg out/t.svg --convert out/t.xml; }
read_model () { refused_run "$1" "$2" "$3" --model "$4"; }
read_config () { refused "$1" "$2" "$3" model "$4" --json out/r.json; }
read_workload () { refused_run "$1" "$2" "$3" --workload "$4"; }
read_result () { refused "$1" "$2" "$3" diff good-result "$4" --json out/r.json; }

cp "$SRC/topologies/tpu-v5p-2x6144.xml" good-topology
cp "$SRC/topologies/chips/h100.xml" good-chip
cp "$SRC/workloads/models/gpt3-175b.xml" good-model
cp "$SRC/workloads/models/llama3-8b.json" good-config
cp "$SRC/workloads/llama3-8b-v5e.xml" good-workload
if ! podsim run "${job[@]}" --allow-idle --json good-result; then
  verdict good-result "$(head -n 1 stderr)"
  exit 1
fi

# A file's name says to some readers what it is.
suffix_of ()
{
  case $1 in config | result) echo .json ;; *) echo .xml ;; esac
}

# ---- files that are no text of any format ----

printf '' >in/empty
printf ' \n\t\n' >in/blank
printf '\0\0\0\0' >in/nul
truncate -s 200M in/sparse
head -c 3000000 /dev/urandom >in/random
mkfifo in/fifo
mkdir in/folder
printf '\377\376<\0?\0x\0m\0l\0' >in/utf16
yes 'junk, and nothing but junk, line after line' | head -c 8000000 >in/junk
: >in/unreadable && chmod 000 in/unreadable

for kind in topology chip model config workload result; do
  end=$(suffix_of $kind)
  for name in empty blank nul sparse random utf16 junk; do
    mv in/$name "in/$name$end"
    where="in/$name\\$end:[0-9]+: "
    [ $name != sparse ] || where="in/$name\\$end: too big: 209715200 bytes"
    if [ $name = sparse ] && [ -z "$SANITIZE" ]; then
      # Read whole, it would not fit
      (ulimit -v 190000 && read_$kind "$kind/$name" 2 "$where" "in/$name$end"; exit $result) || result=1
    else
      read_$kind "$kind/$name" 2 "$where" "in/$name$end"
    fi
    mv "in/$name$end" in/$name
  done
  for name in fifo folder; do
    mv in/$name "in/$name$end"
    read_$kind "$kind/$name" 2 ".*in/$name\\$end'?:? " "in/$name$end"
    mv "in/$name$end" in/$name
  done
  read_$kind "$kind/missing" 2 ".*in/nowhere\\$end" "in/nowhere$end"
  read_$kind "$kind/missing folder" 2 ".*nowhere/file\\$end" "nowhere/file$end"
  read_$kind "$kind/name of 5000 bytes" 2 "" "in/$(printf 'x%.0s' {1..5000})$end"
  ln -s /dev/zero "zero$end"
  read_$kind "$kind/dev-zero" 2 ".*zero\\$end: " "./zero$end"
  rm "zero$end"
  ln -s "loop$end" "loop$end"
  read_$kind "$kind/loop of links" 2 ".*loop\\$end" "./loop$end"
  rm "loop$end"
  if [ "$(id -u)" -ne 0 ]; then
    mv in/unreadable "in/unreadable$end"
    read_$kind "$kind/unreadable" 2 "in/unreadable\\$end: " "in/unreadable$end"
    mv "in/unreadable$end" in/unreadable
  fi
done

# ---- XML ----

# broken_xml KIND NAME LINE: the text on stdin; LINE is an ERE
broken_xml ()
{
  local kind=$1 name=$2 line=$3
  cat >in/broken.xml
  read_"$kind" "$kind/$name" 2 "in/broken\\.xml:($line): " in/broken.xml
}

nested ()
{
  printf '<?xml version="1.0"?>\n'
  printf "<$1>%.0s" {1..5000}
  printf "</$1>%.0s" {1..5000}
}

for kind in topology chip model workload; do
  root=$kind
  good=$(tail -n +2 good-$kind)
  broken_xml $kind 'not closed' '[0-9]+' <<<"${good%</*}"
  broken_xml $kind 'tags crossed' 2 <<<"<$root>
<a><b></a></b></$root>"
  broken_xml $kind 'second root' '[0-9]+' <<<"$good<$root/>"
  broken_xml $kind 'DOCTYPE' 2 <<<"<?xml version=\"1.0\"?>
<!DOCTYPE $root>
$good"
  broken_xml $kind 'DOCTYPE in small letters' '1' <<<"<!doctype $root>$good"
  broken_xml $kind 'DOCTYPE behind a comment' '[23]' <<<"<?xml version=\"1.0\"?><!-- <!DOCTYPE -->
<!-- -- -->
<!DOCTYPE $root [<!ENTITY a \"b\">]>
$good"
  broken_xml $kind 'file as entity' 1 <<<"<!DOCTYPE $root [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><$root name=\"&a;\"/>"
  broken_xml $kind 'entity over the net' 1 <<<"<!DOCTYPE $root SYSTEM \"http://127.0.0.1:1/x.dtd\"><$root/>"
  broken_xml $kind 'billion laughs' 2 <<<"<?xml version=\"1.0\"?>
<!DOCTYPE lolz [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\">
<!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\"><!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;\"><!ENTITY f \"&e;&e;&e;&e;&e;&e;&e;&e;\">]>
<$root name=\"&f;&f;&f;&f;\"/>"
  broken_xml $kind 'unknown entity' '[12]' <<<"<$root name=\"
&nowhere;\"/>"
  broken_xml $kind 'wrong root' 3 <<<"<?xml version=\"1.0\"?>

<machine name=\"a\"/>"
  broken_xml $kind 'root in a name space' '1' <<<"<$root xmlns=\"http://example.com/\" name=\"a\"/>"
  broken_xml $kind 'unknown element' '[0-9]+' <<<"${good%</*}<frobnicate/></$root>"
  broken_xml $kind 'unknown attribute' '[0-9]+' <<<"${good/<$root /<$root frobnicate=\"1\" }"
  broken_xml $kind 'attribute twice' '[0-9]+' <<<"${good/<$root /<$root name=\"1\" name=\"1\" }"
  broken_xml $kind 'text between elements' '[0-9]+' <<<"${good%</*}some text</$root>"
  broken_xml $kind 'not UTF-8' 3 <<<"<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<$root
 name=\"$(printf '\303(')\"/>"
  broken_xml $kind 'another encoding' '[0-9]+' <<<"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>
<$root name=\"$(printf '\344')\"/>"
  broken_xml $kind 'UTF-16' '1' < <(printf '\376\377'; printf '<?xml version="1.0"?><%s/>' "$root" | sed 's/./\x0&/g')
  broken_xml $kind 'control byte' '[0-9]+' <<<"<$root name=\"$(printf 'a\033[31mb')\"/>"
  broken_xml $kind 'control byte as reference' '[0-9]+' <<<"<$root name=\"&#27;[31m\"/>"
  broken_xml $kind 'NUL byte' '[0-9]+' < <(printf '%s\0%s' "${good:0:60}" "${good:60}")
  broken_xml $kind 'nested 5000 deep' '[0-9]+' < <(nested "$root")
  broken_xml $kind '30000 attributes' '[0-9]+' < <(printf '<%s' "$root"; seq -f ' a%.0f="1"' 30000; printf '/>')
  broken_xml $kind 'attribute of 12 MB' '[0-9]+' < <(printf '<%s frobnicate="' "$root"; yes | head -c 12000000 | tr -d '\n'; yes | head -c 12000000 | tr -d '\n'; printf '"/>')
done

topology () { broken_xml topology "$1" 3 <<<"<?xml version=\"1.0\"?>
<topology name=\"broken\" chip=\"${3:-tpu-v5p}\">
  $2
</topology>"; }

topology 'no fabric' ''
topology 'two fabrics' '<torus extent="2x2x2"/><torus extent="2x2x2"/>'
topology 'no extent' '<torus/>'
for extent in 0x4x4 4x0 -4x4x4 4x-4x4 4x4x4x4 4x x4 4xx4 axb 4,4 ' ' 1e3x4 0x7fffffff 4.5x4 NaN infx4 '4x4x4 t' 99999999999999999999x4x4 16777217x1x1 16777216x16777216x16777216 65536x65536x65536; do
  case $extent in
    9999* | 1677* | 655*) wanted=3 ;;
    *) wanted=2 ;;
  esac
  cat >in/broken.xml <<<"<topology name=\"broken\" chip=\"tpu-v5p\">
<torus extent=\"$extent\"/></topology>"
  read_topology "topology/torus $extent" $wanted "in/broken\\.xml:2: " in/broken.xml
done
topology 'no slices' '<torus extent="4x4x4" slices="0"/>'
topology 'slices -1' '<torus extent="4x4x4" slices="-1"/>'
topology 'half a slice' '<torus extent="4x4x4" slices="1.5"/>'
topology 'slices beyond 2^64' '<torus extent="4x4x4" slices="99999999999999999999999"/>'
topology 'wraps in w' '<torus extent="4x4x4" wrap="w"/>'
topology 'twisted maybe' '<torus extent="4x4x8" twisted="maybe"/>'
topology 'torus of a switched chip' '<torus extent="4x4"/>' h100
topology 'switched TPUs' '<switched nodes="2" chips-per-node="8"/>' tpu-v5p
topology 'no nodes' '<switched nodes="0" chips-per-node="8"/>' h100
topology 'no chips in a node' '<switched nodes="2" chips-per-node="0"/>' h100
topology 'no levels' '<switched nodes="2" chips-per-node="8" levels="0"/>' h100
topology '9 levels' '<switched nodes="2" chips-per-node="8" levels="9"/>' h100
topology 'radix 0' '<switched nodes="200" chips-per-node="8" radix="0"/>' h100
for ratio in 0 -1 nan 1/0 1/ / 1/1/1/1/1 inf 1:0 1e400 1e-400; do
  topology "oversubscription $ratio" "<switched nodes=\"64\" chips-per-node=\"8\" oversubscription=\"$ratio\"/>" h100
done
for nic in 'nan' '-1 GB/s' 0 '0 GB/s' 'inf GB/s' '1e400 GB/s' '1e-400 GB/s' 50 '50 GB' '50 Gbps' '5,5 GB/s' '0x10 GB/s' '1e GB/s' '٣ GB/s' '+1 GB/s' '1 2 GB/s' '--1 GB/s' '1e308 TB/s'; do
  topology "nic $nic" "<switched nodes=\"2\" chips-per-node=\"8\" nic=\"$nic\"/>" h100
done
topology 'link to nowhere' '<graph><node name="a"/><node name="b"/><link from="a" to="c" rate="1 GB/s"/></graph>' h100
topology 'link to itself' '<graph><node name="a"/><link from="a" to="a" rate="1 GB/s"/></graph>' h100
topology 'link without a rate' '<graph><node name="a"/><node name="b"/><link from="a" to="b"/></graph>' h100
for rate in 0 '0 GB/s' '-1 GB/s' 'nan GB/s' 'inf' '1e400 GB/s' 7; do
  topology "link of $rate" "<graph><node name=\"a\"/><node name=\"b\"/><link from=\"a\" to=\"b\" rate=\"$rate\"/></graph>" h100
done
for latency in -1us nan 1e30s 5 '1,5 us'; do
  topology "latency $latency" "<graph><node name=\"a\"/><node name=\"b\"/><link from=\"a\" to=\"b\" rate=\"1 GB/s\" latency=\"$latency\"/></graph>" h100
done
topology 'name twice' '<graph><node name="a"/><node name="a"/></graph>' h100
topology 'only switches' '<graph><switch name="a"/></graph>' h100
topology 'empty name' '<graph><node name=""/></graph>' h100
refused_topology ()
{
  printf '<topology name="broken" chip="%s">\n%s</topology>' "$3" "$4" >in/broken.xml
  read_topology "topology/$1" 2 "$2" in/broken.xml
}
refused_topology 'unknown chip' 'in/broken\.xml:.*h1000' h1000 '<switched nodes="2" chips-per-node="8"/>'
refused_topology 'itself as a chip' 'in/broken\.xml:.*:1: ' ./in/broken.xml '<switched nodes="2" chips-per-node="8"/>'
refused_topology 'unknown field' 'in/broken\.xml:.*frobnicate' h100 '<set field="frobnicate" value="1"/><switched nodes="2" chips-per-node="8"/>'
refused_topology 'negative field' 'in/broken\.xml:.*hbm_bandwidth' h100 '<set field="hbm_bandwidth" value="-1 GB/s"/><switched nodes="2" chips-per-node="8"/>'

# A fact of the chip h100, changed
chip ()
{
  sed -E "s|<($2) value=\"[^\"]*\"|<\\1 value=\"$3\"|" good-chip >in/broken.xml
  cmp -s good-chip in/broken.xml && verdict "chip/$1" 'the test changed nothing'
  read_chip "chip/$1" 2 'in/broken\.xml:[0-9]+: ' in/broken.xml
}
for value in nan inf -1 '-1 GB/s' '0 GB/s' '' '1e400 GB/s' '3350' '3,35 TB/s' '3.35 TBps'; do
  chip "bandwidth $value" hbm_bandwidth "$value"
done
for value in 0 -1 nan 1.5 1e9 99999999999999999999; do
  chip "count $value" cores_per_chip "$value"
done
chip 'peak without end' peak_bf16 1e400
chip 'no peak' peak_bf16 0
chip 'capacity below the reserve' hbm_capacity '1 MB'
grep -v '<hbm_bandwidth' good-chip >in/broken.xml
read_chip 'chip/no bandwidth' 2 'in/broken\.xml:[0-9]+: ' in/broken.xml
sed -E 's/family="[a-z]*"/family="quantum"/' good-chip >in/broken.xml
read_chip 'chip/unknown family' 2 'in/broken\.xml:[0-9]+: ' in/broken.xml
sed -E '/<hbm_bandwidth/p' good-chip >in/broken.xml
read_chip 'chip/fact twice' 2 'in/broken\.xml:[0-9]+: ' in/broken.xml

# The model gpt3-175b, changed
model ()
{
  sed -E "$2" good-model >in/broken.xml
  cmp -s good-model in/broken.xml && verdict "model/$1" 'the test changed nothing'
  read_model "model/$1" 2 'in/broken\.xml:[0-9]+: ' in/broken.xml
}
for value in 0 -1 97 1.5 nan 1e9 99999999999999999999 ''; do
  model "heads $value" "s/heads=\"96\"/heads=\"$value\"/"
done
model 'kv heads do not divide' 's/heads="96"/heads="96" kv-heads="7"/'
model 'no kv heads' 's/heads="96"/heads="96" kv-heads="0"/'
model 'no heads at all' 's/heads="96" //'
model 'no layers' 's/layers="96"/layers="0"/'
model 'layers -1' 's/layers="96"/layers="-1"/'
model 'a billion layers' 's/layers="96"/layers="1000000000"/'
model 'hidden 0' 's/hidden="12288"/hidden="0"/'
model 'hidden missing' 's/hidden="12288"//'
model 'hidden 2^64' 's/hidden="12288"/hidden="18446744073709551616"/'
model 'tied maybe' 's/tied="true"/tied="maybe"/'
model 'positions missing' 's/max-positions="2048"//'
model 'mla without ranks' 's/kind="gqa"/kind="mla"/'
model 'unknown attention' 's/kind="gqa"/kind="linear"/'
model 'pattern without window' 's/heads="96"/heads="96" pattern="local global"/'
model 'unknown pattern' 's/heads="96"/heads="96" window="9" pattern="local elsewhere"/'
model 'norms per layer' 's/kind="layer"/kind="layer" per-layer="99999999999"/'
sed -E 's/hidden="12288"/hidden="999999999936"/; s/vocab="50257"/vocab="1000000000000"/' good-model >in/broken.xml
read_model 'model/too many parameters' 3 'in/broken\.xml:' in/broken.xml

workload ()
{
  printf '<workload name="broken">\n  <model model="llama3-8b"/>\n  %s\n</workload>' "$2" >in/broken.xml
  read_workload "workload/$1" "${3:-2}" 'in/broken\.xml:3: ' in/broken.xml
}
workload 'unknown option' '<batch frobnicate="1"/>'
workload 'a workload in it' '<run workload="in/broken.xml"/>'
workload 'not a number' '<batch micro-batch="many"/>'
workload 'negative' '<batch micro-batch="-1"/>'
workload 'empty number' '<batch micro-batch=""/>'
workload 'zero' '<batch micro-batch="0"/>'
workload 'not a flag' '<layout sequence-parallel="maybe"/>'
workload 'not a ratio' '<run availability="nan"/>'
workload 'order of elements' '<batch/><model/>'
workload 'unknown element' '<frobnicate/>'
printf '<workload>\n<model seq-len="8192"/>\n<batch seq-len="8192"/></workload>' >in/broken.xml
read_workload 'workload/option in two elements' 2 'in/broken\.xml:3: ' in/broken.xml
printf '<workload>\n<batch seq-len="8192"/>\n</workload>' >in/broken.xml
refused_run 'workload/contradiction' 2 'in/broken\.xml:2: ' --workload in/broken.xml --strict

# ---- JSON ----

# broken_json KIND NAME LINE: the text on stdin
broken_json ()
{
  local kind=$1 name=$2 line=$3
  cat >in/broken.json
  read_"$kind" "$kind/$name" 2 "in/broken\\.json:($line): " in/broken.json
}

for kind in config result; do
  good=$(<good-$kind)
  broken_json $kind 'not closed' '[0-9]+' <<<"${good%\}*}"
  broken_json $kind 'comma at the end' '[0-9]+' <<<"${good%\}*},}"
  broken_json $kind 'text behind' '[0-9]+' <<<"$good {}"
  broken_json $kind 'comment' 1 <<<"/* a */ $good"
  broken_json $kind 'single quotes' 1 <<<"{'a': 1}"
  broken_json $kind 'key twice' 2 <<<'{"a": 1,
"a": 2}'
  broken_json $kind NaN 2 <<<'{"a": 1,
"hidden_size": NaN}'
  broken_json $kind Infinity 1 <<<'{"a": -Infinity}'
  broken_json $kind 1e400 2 <<<'{
"hidden_size": 1e400}'
  broken_json $kind 'leading zero' 1 <<<'{"a": 01}'
  broken_json $kind hexadecimal 1 <<<'{"a": 0x10}'
  broken_json $kind 'number of 100000 digits' 1 < <(printf '{"a": '; printf '9%.0s' {1..100000}; printf '}')
  broken_json $kind 'lone surrogate' 1 <<<'{"a": "\ud800"}'
  broken_json $kind 'NUL in a string' 1 <<<'{"a": "\u0000"}'
  broken_json $kind 'control byte' 1 < <(printf '{"a": "\033[31m"}')
  broken_json $kind 'not UTF-8' 2 < <(printf '{"a":\n"\303("}')
  broken_json $kind 'UTF-16' 1 < <(printf '\377\376{\0}\0')
  broken_json $kind 'NUL byte' 1 < <(printf '{"a": 1\0}')
  broken_json $kind 'nested 100000 deep' 1 < <(printf '[%.0s' {1..100000})
  broken_json $kind 'nested objects' '[0-9]+' < <(printf '{"a":%.0s' {1..20000})
  broken_json $kind 'a list' 1 <<<'[1, 2]'
  broken_json $kind 'a number' 1 <<<'1'
  broken_json $kind 'null' 1 <<<'null'
  gzip -c good-$kind >in/whole.gz
  head -c 200 in/whole.gz >in/broken.json
  read_$kind "$kind/gzip cut short" 2 'in/broken\.json: gzip' in/broken.json
  head -c 3 in/whole.gz >in/broken.json
  read_$kind "$kind/gzip magic alone" 2 'in/broken\.json: gzip' in/broken.json
  { head -c 100 in/whole.gz; printf 'damage'; tail -c +107 in/whole.gz; } >in/broken.json
  read_$kind "$kind/gzip damaged" 2 'in/broken\.json:' in/broken.json
  { cat in/whole.gz; printf 'behind the end'; } >in/broken.json
  read_$kind "$kind/gzip with more behind" 2 'in/broken\.json:' in/broken.json
done
# Each of these keys is worth a note, and a note names a line
{ printf '{'; seq -f '"expert_%.0f": 1,' 60000; printf '"model_type": "llama"}'; } >in/broken.json
read_config 'config/60000 unknown keys' 2 'in/broken\.json:[0-9]+: ' in/broken.json
head -c 300000000 /dev/zero | gzip -1 >in/broken.json
read_config 'config/gzip bomb' 2 'in/broken\.json: too big' in/broken.json

config ()
{
  sed -E "$2" good-config >in/broken.json
  cmp -s good-config in/broken.json && verdict "config/$1" 'the test changed nothing'
  read_config "config/$1" 2 'in/broken\.json:[0-9]+: ' in/broken.json
}
for value in 0 -1 7 31 1.5 1e400 '"32"' '[32]' '{}' 'true' 99999999999999999999; do
  config "heads $value" "s/(\"num_attention_heads\": )32/\\1$value/"
done
for value in 0 7 64 -8; do
  config "kv heads $value" "s/(\"num_key_value_heads\": )8/\\1$value/"
done
config 'no layers' 's/("num_hidden_layers": )32/\10/'
config 'a billion layers' 's/("num_hidden_layers": )32/\11000000000/'
config 'layers missing' '/"num_hidden_layers"/d'
config 'hidden missing' '/"hidden_size"/d'
config 'hidden a list' 's/("hidden_size": )4096/\1[4096]/'
config 'unknown architecture' 's/("model_type": )"llama"/\1"frobnicate"/'
config 'architecture a number' 's/("model_type": )"llama"/\17/'
config 'text_config a number' 's/\{/{ "text_config": 7,/'
sed 's/("hidden_size": )4096/&/; s/"vocab_size": 128256/"vocab_size": 9000000000000000000/' good-config >in/broken.json
read_config 'config/too many parameters' 3 'in/broken\.json:' in/broken.json

for text in '{}' '{"step": 1}' '{"step": {}}' '{"step": {"time_s": null}}' '{"step": {"time_s": "1"}}' '{"step": {"time_s": [1]}}' '{"step": [{"time_s": 1}]}'; do
  broken_json result "$text" 1 <<<"$text"
done

# ---- options ----

option () { refused_run "option/$1 ${2:0:40}" "${4:-2}" "${3:---$1: }" "--$1" "$2"; }

long=$(printf 'x%.0s' {1..100000})
for text in '' ':' ':4x4' tpu-v5p: tpu-v5p:0x4x4 tpu-v5p:4x4x4x4 tpu-v5p:-1x4 tpu-v5p:4x4x4,, tpu-v5p:4x4x4,nic= tpu-v5p:4x4x4,nic=nan \
  tpu-v5p:4x4x4,nic=-1GB/s tpu-v5p:4x4x4,frobnicate=1 'tpu-v5p:4x4x4*0' 'tpu-v5p:4x4x4*-1' 'tpu-v5p:4x4x4*2*2' 'tpu-v5p:4x4x4*' \
  tpu-v5p:4x4x4tt h100:8t 'h100:8*2' h100:0 h100:8x0 h100:8x h100:x8 h100:8x4x2 h100:8x4,rails=0 h100:8x4,tree=0 h100:8x4,tree=9 \
  h100:8x4,oversub=0 h100:8x4,oversub=nan h100:8x4,nic=400 h100:8x4,nodes=2 nowhere:4x4 tpu-v5p frobnicate "$long" "tpu-v5p:$long" \
  "tpu-v5p:4x4x4,$long" "$long:4x4x4" $'tpu-v5p:4\nx4' $'\033[31m' $'\303(' 'tpu-v5p:4x4x4,nic=1e400GB/s' 'h100:8x4,radix=-1' 'h100:8x4,unit-nodes=0'; do
  option topology "$text"
done
for text in tpu-v5p:99999999999x4x4 'tpu-v5p:16x16x16*99999999' tpu-v5p:16777216x16777216x16777216 h100:16777216x16777216 h100:8x16777216 h100:99999999999999999999; do
  option topology "$text" '--topology: ' '[23]'
done
for text in '' frobnicate "$long" $'llama3-8b\n' '../../etc/passwd' / . ..; do
  option model "$text"
done
for text in '' frobnicate "$long" /; do
  option workload "$text"
done
for text in '' 0 -1 nan inf 1e400 1.5 4k k 4096tok '4 096' '4,096' 0x1000 18446744073709551616 1e30 "$long" $'4096\n1' '１２'; do
  option seq-len "$text"
done
for text in '' 0 -1 nan tok 0tok -1tok 1e400 1.5 18446744073709551616 "$long" '8 tokens' 8toks; do
  option global-batch "$text"
done
option global-batch 4097tok '--global-batch: .*remainder' 3
option global-batch 7 '' 3
option global-batch 18446744073709551615 '' 3
for name in micro-batch layers hidden heads kv-heads head-dim ffn vocab; do
  for text in '' 0 -1 nan 1.5 1e400 18446744073709551616 x "$long"; do
    option $name "$text"
  done
done
option micro-batch 9223372036854775807 '' 3
option micro-batch 4611686018427387904 '' 3
option micro-batch 1e18 '' 3
option seq-len 1e18 '' 3
option global-batch 9223372036854775807 '' 3
option global-batch 8e12 '' 3
option global-batch 8e9 '' 3
option heads 7 '' 2
option kv-heads 7 '' 2
option layers 9223372036854775807 '' 2
for name in hidden vocab ffn head-dim; do
  option $name 9223372036854775807 '' '[23]'
done
for text in -1 4 nan x ''; do
  option zero "$text"
done
for text in -1 nan x '' 1e400; do
  option prefetch "$text"
  option price "$text"
  option availability "$text"
done
option availability 0
option availability 1.5
for text in 0 -1 nan '' x 1e400; do
  option tokens "$text"
done
for name in schedule recompute optimizer dtype param-dtype master-dtype grad-dtype fidelity network fold flops-convention algorithm; do
  for text in '' frobnicate "$long"; do
    option $name "$text"
  done
done
for text in x x=2 fsdp fsdp= fsdp=0 fsdp=-1 fsdp=nan fsdp=1.5 =8 'fsdp=auto tp=auto' 'fsdp=8 fsdp=8' 'fsdp=4294967296' 'fsdp=18446744073709551616' \
  'fsdp=8=8' 'fsdp=8,tp=1' 'fsdp:8' "fsdp=$long" "$long" 'ep=0' $'fsdp=8\033' 'fsdp=8 fsdp=auto'; do
  option layout "$text"
done
for text in fsdp=4 fsdp=16 tp=7 'tp=3 fsdp=auto' 'fsdp=65536 dp=65536' 'fsdp=4294967295 dp=4294967295 pp=4294967295' 'fsdp=65536 dp=65536 tp=65536 pp=65536' pp=4294967295; do
  option layout "$text" '' 3
done
refused_run 'option/zero 3 of too many' 3 '' --zero 3 --layout 'dp=65536 fsdp=65536'
refused_run 'option/zero 3 of 2^32 idle' 3 '' --zero 3 --layout 'dp=65536 fsdp=65536' --allow-idle
for text in 'fsdp' 'fsdp=' 'fsdp=w:8' '=x' 'fsdp=x:2,,y:2' 'fsdp=,' 'fsdp=:' 'fsdp=x:' 'fsdp=x:nan,y,z' 'fsdp=x:-1' 'fsdp=x y=2' 'fsdp=x:2:2' 'tp=x:2' '' "fsdp=$long" "$long" 'fsdp=x,y,z fsdp=x'; do
  option map "$text" '' '[23]'
done
for text in 'fsdp=x:0,y,z' 'fsdp=x:3,y,z' 'fsdp=x,y' 'fsdp=x:18446744073709551615' "fsdp=x$(printf ',x:1%.0s' {1..100})"; do
  option map "$text" '' '[23]'
done
switched=(--topology h100:8x2 --layout "dp=2 fsdp=8" --global-batch 16)
for text in '' x tp,tp , 'dp,,tp' 'tp;dp' "$long" 'dp,fsdp,tp,pp,cp,dp'; do
  refused_run "option/order ${text:0:40}" 2 '--order: ' "${switched[@]}" --order "$text"
done
refused_run 'option/order on a torus' 2 '--order' --order tp,dp
refused_run 'option/map on switches' 2 '--map' "${switched[@]}" --map fsdp=x
for text in '' , 8, x nan -1 1.5 99999999999999999999; do
  refused_run "option/stage-layers $text" '[23]' '--stage-layers: ' --layout 'pp=4 fsdp=2' --stage-layers "$text"
done
for text in 8,8,8 8,8,8,9 8,8,8,8,0 4294967295,1,1,31 4294967296,1,1,30 18446744073709551615,1,16,16 0,0,0,0; do
  refused_run "option/stage-layers $text" 3 '--stage-layers: ' --layout 'pp=4 fsdp=2' --stage-layers "$text"
done
for text in '' = chip chip. chip.= chip.hbm_bandwidth chip.hbm_bandwidth= chip.hbm_bandwidth=nan chip.hbm_bandwidth=0GB/s chip.hbm_bandwidth=-1GB/s \
  chip.hbm_bandwidth=3350 chip.frobnicate=1 frobnicate=1 chip.cores_per_chip=0 chip.cores_per_chip=99999999999 chip.devices_per_chip=3 topology.frobnicate=1 \
  topology.extent=0x1x1 topology.slices=0 topology.nic=nan topology.=1 topology.extent= model.frobnicate=1 model.layers=0 model.layers=-1 model.layers= \
  model.hidden=nan model.kv_heads=7 model.experts=1 model.top_k=9 chip.hbm_bandwidth=1e400GB/s "$long" "chip.$long=1" "chip.hbm_bandwidth=$long" $'chip.\n=1' \
  chip.wrap_rule=x chip.torus_dims=9 'chip.hbm_capacity=1 B' 'chip.reserved_memory=1e30 B' =1 .=1; do
  option set "$text"
done
for text in -1 x 8 99999999999 '' , 0,,1 0,8 1.5 "$long"; do
  refused_run "option/trace-ranks ${text:0:40}" 2 '--trace-ranks: ' --trace-ranks "$text"
done
refused_run 'option/unknown' 2 '.*--frobnicate' --frobnicate
refused_run 'option/without its value' 2 '.*--layout' --layout
refused_run 'option/argument left over' 2 '.*frobnicate' frobnicate
refused_run 'option/argument left over with control bytes' 2 '' $'frob\n\033[31mnicate'
refused_run 'option/a flag with a value' 2 '.*allow-idle' --allow-idle=7
refused_run 'option/not UTF-8' 2 '' $'--frob\377'
refused 'command/none' 2 'a command is missing'
refused 'command/unknown' 2 ".*'rnu'" rnu
refused 'command/empty' 2 '' ''
refused 'command/long' 2 '' "$long"
refused 'command/with control bytes' 2 '' $'run\n\033[31m'
refused 'command/help of an unknown one' 2 ".*'rnu'" help rnu
refused 'run/no topology' 2 '--topology: ' run --model llama3-8b --global-batch 8 --json out/r.json
refused 'run/no model' 2 '--model: ' run --topology tpu-v5p:2x2x2 --global-batch 8 --json out/r.json
refused 'run/no batch' 2 '--global-batch: ' run --topology tpu-v5p:2x2x2 --model llama3-8b --json out/r.json
refused 'run/mixture of experts' 2 '' run "${job[@]}" "${files[@]}" --model mixtral-8x7b
refused 'diff/one file' 2 '' diff good-result --json out/r.json
refused 'diff/three files' 2 '' diff good-result good-result good-result --json out/r.json
refused 'topology/two machines' 2 '' topology h100:8 --topology h100:8 --json out/r.json
refused 'topology/suffix' 2 '--convert: ' topology h100:8 --convert out/t.pdf

collective=(collective --topology tpu-v5p:4x4x4 --kind all_gather --axes x --json out/r.json)
for words in '--kind x' '--axes w' '--axes x:0' '--axes x:3' '--axes x:' '--axes ,' '--axes x:nan' '--ranks 0' '--ranks -1' '--ranks 99' '--ranks nan' \
  '--ranks 2 --stride 0' '--ranks 4 --stride 99999999999' '--devices 0' '--devices 0,0' '--devices 0,99999999999' '--devices ,' '--devices x' '--bytes 0:8' '--bytes 8:4' \
  '--bytes 8:16:1' '--bytes 8:16:nan' '--bytes 1:2:3:4' '--bytes nan' '--bytes -1' '--bytes x' '--bytes 1e400' '--bytes 1:1e18:1.0000001' \
  '--bytes :' '--bytes-are x' '--algorithm x' '--fidelity x' '--dtype x' '--set x' '--topology x' "--axes $long" "--bytes $long" "--devices $long"; do
  read -ra list <<<"$words"
  refused "collective/${words:0:40}" '[23]' '' "${collective[@]}" "${list[@]}"
done
roofline=(roofline --topology tpu-v5p:2x2x2 --op matmul --shape B=8,D=8,F=8 --json out/r.json)
for words in '--op x' '--shape B=8' '--shape B=0,D=8,F=8' '--shape B=-1,D=8,F=8' '--shape B=nan,D=8,F=8' '--shape B=8,B=8,D=8,F=8' '--shape B=8,D=8,F=8,X=1' '--shape ,' '--shape =' \
  '--shape B=1e30,D=8,F=8' '--shape B=8,D=8,F=8,G=0' '--shape B=18446744073709551615,D=18446744073709551615,F=18446744073709551615' '--dtype x' '--from x' '--fidelity x' '--set x' '--op attention --shape T=0,S=0,N=0,H=0' \
  '--op vector --shape elements=nan' '--op copy --shape bytes=-1' '--op copy --shape bytes=1e400' "--shape $long" '--op attention --shape T=8,S=8,N=8,K=3,H=8' '--op vector --shape elements=1e308,flops=1e308'; do
  read -ra list <<<"$words"
  refused "roofline/${words:0:40}" '[23]' '' "${roofline[@]}" "${list[@]}"
done

# ---- files that cannot be written ----

writes=(run "${job[@]}")
may_print=yes
for name in json dump-program trace; do
  end=.json
  refused "write/$name into a missing folder" 1 "nowhere/r\\$end: cannot write" "${writes[@]}" --$name nowhere/r$end
  refused "write/$name onto a folder" 1 'in/folder.*: ' "${writes[@]}" --$name in/folder/
  mkdir "d$end"
  refused "write/$name onto a folder of that name" 1 "d\\$end: cannot write" "${writes[@]}" --$name "d$end"
  rmdir "d$end"
  ln -s /dev/full "full$end"
  refused "write/$name to a full device" 1 "full\\$end: cannot write: No space" "${writes[@]}" --$name "full$end"
  rm "full$end"
  if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 readonly
    refused "write/$name into a read-only folder" 1 'readonly/r' "${writes[@]}" --$name readonly/r$end
    rmdir readonly
  fi
done
may_print=

# closed NAME STATUS PATTERN WORDS...: with stdout closed, or full
unwritten ()
{
  local name=$1 wanted=$2 pattern=$3 status=0
  shift 3
  : >stdout
  is_wanted "$name (closed)" || return 0
  timeout -k 5 "$limit_s" "$PODSIM" "$@" >&- 2>stderr </dev/null || status=$?
  verdict "$name (closed)" "$(judge "$wanted" "$status" "^podsim: $pattern")"
  rm -rf out && mkdir out
  status=0
  timeout -k 5 "$limit_s" "$PODSIM" "$@" >/dev/full 2>stderr </dev/null || status=$?
  verdict "$name (full)" "$(judge "$wanted" "$status" "^podsim: $pattern")"
  rm -rf out && mkdir out
}

unwritten stdout/run 1 '.*standard output' "${writes[@]}"
unwritten stdout/json 1 'standard output: cannot write' "${writes[@]}" --json -
unwritten stdout/model 1 '.*standard output' model llama3-8b
unwritten stdout/topology 1 '.*standard output' topology
unwritten stdout/svg 1 'standard output: cannot write' topology h100:8 --svg -
unwritten stdout/collective 1 '.*standard output' collective --topology h100:8 --kind all_reduce --ranks 8
unwritten stdout/roofline 1 '.*standard output' roofline --topology h100 --shape B=8,D=8,F=8
unwritten stdout/diff 1 '.*standard output' diff good-result good-result
unwritten stdout/version 1 '.*standard output' --version
unwritten stdout/help 1 '.*standard output' --help
unwritten 'stdout/help of a command' 1 '.*standard output' run --help

# With 0, 1 and 2 closed, no file may get one of these numbers: it would hold the messages
if is_wanted 'closed/all'; then
  status=0
  timeout -k 5 "$limit_s" "$PODSIM" run "${job[@]}" --json out/r.json --trace out/t.json <&- >&- 2>&- || status=$?
  why=
  [ $status -eq 1 ] || why="exit status $status instead of 1"
  cmp -s out/r.json good-result || why=${why:-"out/r.json is not what it is otherwise"}
  verdict 'closed/all' "$why"
  rm -rf out && mkdir out
fi
