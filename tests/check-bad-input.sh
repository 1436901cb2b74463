#!/bin/bash
# Broken and hostile files: every one that podsim reads, in every way that a file can be wrong. What a
# refusal must be stands in tests/support/refusals.sh. Prints "ok NAME" or "not ok NAME: why"; run by
# tests/run.sh, or by hand: PODSIM=build/podsim tests/check-bad-input.sh [WORD], only names with WORD.
# shellcheck disable=SC2034,SC2154,SC2317 # what refusals.sh sets and calls
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
only=${1:-}
# shellcheck source=/dev/null
. "$SRC/tests/support/refusals.sh"

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
if ! podsim run "${job[@]}" --json good-result; then
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
      (ulimit -v 190000 && read_$kind "$kind/$name" 2 "$where" "in/$name$end")
    else
      read_$kind "$kind/$name" 2 "$where" "in/$name$end"
    fi
    mv "in/$name$end" in/$name
  done
  for name in fifo folder; do
    mv in/$name "in/$name$end"
    read_$kind "$kind/$name" 2 ".*in/$name\\$end" "in/$name$end"
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
cat >in/broken.xml <<<"<topology name=\"broken\"
 chip=\"tpu-v5p\"></topology>"
read_topology 'topology/no fabric' 2 'in/broken\.xml:[12]: ' in/broken.xml
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

exit "$result"
