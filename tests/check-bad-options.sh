#!/bin/bash
# Wrong options and commands: not a number, out of range, too long, contradictory. What a refusal must be
# stands in tests/support/refusals.sh. Prints "ok NAME" or "not ok NAME: why"; run by
# tests/run.sh, or by hand: PODSIM=build/podsim tests/check-bad-options.sh [WORD], only names with WORD.
# shellcheck disable=SC2034,SC2154,SC2317 # what refusals.sh sets and calls
set -u

SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
only=${1:-}
# shellcheck source=/dev/null
. "$SRC/tests/support/refusals.sh"

if ! podsim run "${job[@]}" --json good-result; then
  verdict good-result "$(head -n 1 stderr)"
  exit 1
fi

# ---- options ----

# option NAME VALUE [PATTERN [STATUS]]
option () { refused_run "option/$1 ${2:0:40}" "${4:-2}" "${3---$1: }" "--$1" "$2"; }

long=$(printf 'x%.0s' {1..100000})
for text in '' ':' ':4x4' tpu-v5p: tpu-v5p:0x4x4 tpu-v5p:4x4x4x4 tpu-v5p:-1x4 'tpu-v5p:4x4x4,,' tpu-v5p:4x4x4,nic= tpu-v5p:4x4x4,nic=nan \
  tpu-v5p:4x4x4,nic=-1GB/s tpu-v5p:4x4x4,frobnicate=1 'tpu-v5p:4x4x4*0' 'tpu-v5p:4x4x4*-1' 'tpu-v5p:4x4x4*2*2' 'tpu-v5p:4x4x4*' \
  tpu-v5p:4x4x4tt h100:8t 'h100:8*2' h100:0 h100:8x0 h100:8x h100:x8 h100:8x4x2 h100:8x4,rails=0 h100:8x4,tree=0 h100:8x4,tree=9 \
  h100:8x4,oversub=0 h100:8x4,oversub=nan h100:8x4,nic=400 h100:8x4,nodes=2 nowhere:4x4 tpu-v5p frobnicate "$long" "tpu-v5p:$long" \
  "tpu-v5p:4x4x4,$long" "$long:4x4x4" $'tpu-v5p:4\nx4x4' $'\033[31m' $'\303(' 'tpu-v5p:4x4x4,nic=1e400GB/s' 'h100:8x4,radix=-1' 'h100:8x4,unit-nodes=0'; do
  option topology "$text"
done
for text in tpu-v5p:99999999999x4x4 'tpu-v5p:16x16x16*99999999' tpu-v5p:16777216x16777216x16777216 h100:16777216x16777216 h100:8x16777216 h100:99999999999999999999; do
  option topology "$text" '--topology: ' '[23]'
done
for text in '' frobnicate "$long" $'llama3-8b\n' / . ..; do
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
option micro-batch 9223372036854775807 '--global-batch: ' 3
option micro-batch 4611686018427387904 '--global-batch: ' 3
option micro-batch 1e18 '--global-batch: ' 3
option seq-len 1e18 '--global-batch: ' 3
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
for text in x x=2 fsdp fsdp= fsdp=0 fsdp=-1 fsdp=nan fsdp=1.5 =8 'fsdp=auto tp=auto tp=2' 'fsdp=8 fsdp=8' 'fsdp=4294967296' 'fsdp=18446744073709551616' \
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
# shard "MESH" "TENSOR=DIMS; ..." [PATTERN [STATUS [MORE...]]]
shard () { refused_run "option/shard $1 ${2:0:80}" "${4:-2}" "${3---shard: }" --mesh "$1" --shard "$2" "${@:5}"; }
for text in '' X X= X=0 X=-1 X=nan X=1.5 x=8 XY=8 8 X=8=8 'X=4,X=2' 'X=4,,Y=2' 'X=1,Y=1,Z=1,A=1,B=1,C=1,D=8' "X=$long" "$long" $'X=8\033'; do
  shard "$text" 'W_in=[D_X,F]' '--mesh: '
done
shard X=8388608 'W_in=[D_X,F]' '--mesh: .*more than' 3
shard X=18446744073709551616 'W_in=[D_X,F]' '--mesh: '
for text in '' ';' W_in W_in= =[D_X,F] '[D_X,F]' 'W_in[D_X,F]' 'W_in=[D_X,F' 'W_in=[D_X F]' 'W_in=D_X,F' 'W_in=[D_,F]' 'W_in=[D_XX,F]' 'W_in=[D_X,F_X]' \
  'W_in=[D_X]' 'W_in=[D_X,G]' 'W_in=[D_X,F,B]' 'W_in=[D_X,D]' 'W_in=[4096_X,F]' 'W_in=[D_Q,F]' 'W_in=bf16[D_X,F]' 'W_in=[D_X,F]{U_X}' 'W_in=[D_X,F] * W_out=[F,D] -> In=[D,F]' \
  'W_in=[D_X,F]; W_in=[D_X,F]' 'W_in=[D_X,F]; w_IN=[D_X,F]' 'frobnicate=[D_X,F]' 'W_expert=[E_X,D,F]' "$long" "W_in=$long" "W_in=[$long]" "$long=[D_X,F]" $'W_in=[D_X,F]\033' $'W_in=\303('; do
  shard X=8 "$text"
done
# Each names the tensor, its dimension, the axis, and what would be right
shard 'X=2,Y=4' 'In=[B_X,S,D]' '--shard: axis Y cuts no tensor.*right: In=\[B_Y, S, D\]'
shard X=8 'In=[B_X,S,D]; W_in=[D_X,F]; W_out=[F,D]' '--shard: W_out: its dimension D is not cut by X, which is fsdp .*right: W_out=\[F, D_X\]$'
shard 'X=2,Y=4' 'In=[B_X,S,D]; W_in=[D_X,F_Y]; W_out=[F,D_XY]' '--shard: axis Y cuts F of W_in, D of W_out, .*right: In=\[B_Y, S, D\]'
shard 'X=2,Y=4' 'W_in=[D_X,F_Y]; W_out=[F_X,D_Y]' '--shard: axis X cuts D of W_in, F of W_out, .*right: In=\[B_X, S, D\]'
shard 'X=2,Y=4' 'In=[B_X,S,D]; W_in=[D_X,F_Y]; W_out=[F,D_X]' '--shard: W_out: its dimension F is not cut by Y, which is tp .*right: W_out=\[F_Y, D_X\]$'
shard 'X=2,Y=4' 'In=[B_X,S,D]; W_in=[D_X,F_Y]; Wq=[D_X,N,H_Y]' '--shard: Wq: its dimension H is cut by Y, which is tp .*right: Wq=\[D_X, N_Y, H\]$'
shard X=8 'In=[B,S,D]; W_in=[D_X,F]' '--shard: axis X cuts D of W_in.*right: In=\[B_X, S, D\]'
shard X=8 'In=[B,S,D_X]; W_in=[D_X,F]' '--shard: axis X cuts D of In, D of W_in'
shard X=8 'In=[B,S_X,D]; W_in=[D_X,F]' '--shard: W_in: its dimension D is cut by X, which is cp .*right: W_in=\[D, F\]$'
shard 'X=2,Z=4' 'In=[B_X,S_Z,D]; W_in=[D_X,F]' '--shard: W_in: its dimension D is not cut by Z, which is cp .*right: W_in=\[D_XZ, F\]$'
shard 'P=2,X=4' 'W_in=[L_P,D_X,F]; W_out=[L,F,D_X]' '--shard: W_out: its dimension L is not cut by P, which is pp .*right: W_out=\[L_P, F, D_X\]$'
shard P=8 'In=[B_P,S,D]; W_in=[L_P,D,F]' '--shard: axis P cuts B of In, L of W_in.*right: L alone by P'
shard 'X=2,Y=2,Z=2' 'In=[B_X,S_Y,D]; W_in=[D_X,F_YZ]' '--shard: In: its dimension S is cut by a part of the axes that are tp \(YZ\); right: S_YZ'
shard 'X=2,Y=4' 'In=[B_X,S_Y,D]; W_in=[D_X,F_Y]' '--shard: In: its dimension S is cut by Y.*right: S without Y$' 2 --no-sequence-parallel
shard 'X=2,Y=4' 'In=[B_X,S,D]; W_in=[D_X,F_Y]' '--shard: In: its dimension S is not cut by Y.*right: S_Y$' 2 --sequence-parallel
shard X=8 'In=[B_X,S,D]; W_in=[D,F]' '--shard: W_in: its dimension D is not cut by X, which is fsdp' 2 --zero 3
shard X=8 'W_in=[D_X,F]' '--mesh: .*--layout' 2 --layout fsdp=8
refused_run 'option/shard without a mesh' 2 '--shard: .*--mesh' --shard 'W_in=[D_X,F]'
shard X=8 'W_gate=[D_X,F]' '--shard: mlp-block has no W_gate' 2 --model mlp-block
shard X=8 'Wk=[D_X,K,H]' '--shard: deepseek-v2 has no Wk: its attention is latent' 2 --model deepseek-v2
shard X=8 'W_in=[D_X,F]' '--shard: mixtral-8x7b has no W_in: .*W_expert' 2 --model mixtral-8x7b
shard 'X=2,Y=4' 'In=[B_X,S_Y,D]; Wq=[D_X,N_Y,H]; W_expert=[E_X,D,F]' '--shard: W_expert: its dimension E is cut by X, but not by Y, .*right: Y cuts E or F too' 2 --model mixtral-8x7b
shard 'X=2,Y=4' 'In=[B_X,S_Y,D]; Wq=[D_X,N_Y,H]; W_expert=[E_Y,D,F]' '--shard: W_expert: its dimension D is not cut by X, .*right: W_expert=\[E_Y, D_X, F\]$' 2 --model mixtral-8x7b
shard 'X=2,Y=4' 'In=[B_X,S,D]; Wq=[D_X,N_Y,H]' '--shard: In: its dimension S is not cut by Y: .*right: S_Y$' 2 --model mixtral-8x7b
shard X=8 'In=[B_X,S,D]; W_in=[D_X,F]' '--shard: W_in: dimension D \(100\) does not divide over X \(8\): 4 are left over; the next sizes that do are 96 and 104$' 3 --hidden 100 --heads 4 --kv-heads 4 --head-dim 25
shard 'X=2,Y=16' 'Wq=[D_X,N_Y,H]; Wk=[D_X,K,H]' '--shard: Wk: its dimension K has 8 heads for the 16 ranks of Y.*right: two axes in place of Y, 8 and 2' 2 --topology tpu-v5p:4x4x2
shard X=4 'In=[B_X,S,D]' '--mesh: as layout "dp=4": .*allow-idle' 3
shard X=16 'In=[B_X,S,D]' '--mesh: as layout "dp=16": ' 3
shard 'X=2,Y=4' 'W_in=[D_X,F_Y]' '--map: ' '[23]' --map 'X=x:2 Y=y,z X=x'
shard 'X=2,Y=4' 'W_in=[D_X,F_Y]' '--map: ' '[23]' --map 'X=x tp=y,z'
shard 'X=2,Y=4' 'W_in=[D_X,F_Y]' '--order ' 2 --order Y,X
shard 'X=2,Z=4,Y=2' 'In=[B_XZ,S,D]; W_in=[D_XZ,F_Y]' '--order: .*one of fsdp=8 tp=2 must follow one another' 2 --topology h100:8x2 --order X,Y,Z
experts=(--topology h100:8 --model mixtral-8x7b --layout "dp=8 ep=8" --global-batch 8)
head -c 100 /dev/zero > nulls
echo '1 2 3 4 5 6 7 -8' > negative-load
echo '1 1 1 1' > few-loads
echo '0 0 0 0 0 0 0 0' > no-load
for text in '' x 0.5 9 nan -1 zipf zipf: zipf:x zipf:-1 zipf:1e9 nothing-there nulls negative-load few-loads no-load . "$long"; do
  refused_run "option/expert-imbalance ${text:0:40}" 2 '--expert-imbalance: ' "${experts[@]}" --expert-imbalance "$text"
done
for text in '' x 0 -1 nan 1e9 "$long"; do
  refused_run "option/capacity-factor ${text:0:40}" 2 '--capacity-factor: ' "${experts[@]}" --capacity-factor "$text"
done
for text in '' x fp4 "$long"; do
  refused_run "option/dispatch-dtype ${text:0:40}" 2 '--dispatch-dtype: ' "${experts[@]}" --dispatch-dtype "$text"
done
for text in 0 -1 x '' 1e400; do
  refused_run "option/route-nodes $text" 2 '--route-nodes: ' "${experts[@]}" --route-nodes "$text"
done
refused_run 'option/route-nodes on a torus' 2 '--route-nodes' --topology tpu-v5p:2x2x2 --model mixtral-8x7b --layout "fsdp=8 ep=8" --global-batch 8 --route-nodes 2
for text in ep=3 ep=16 etp=3 'ep=8 etp=2' 'ep=4294967295 etp=4294967295' 'ep=65536 etp=65536'; do
  refused_run "option/layout $text" 3 '--layout: ' "${experts[@]}" --layout "dp=8 $text"
done
for text in ep=auto ep=x ep= ep=-1 etp=0 'ep=8 ep=8' 'etp=4294967296'; do
  refused_run "option/layout $text" 2 '--layout: ' "${experts[@]}" --layout "dp=8 $text"
done
switched=(--topology h100:8x2 --layout "dp=2 fsdp=8" --global-batch 16)
for text in '' x 'tp,tp' ',' 'dp,,tp' 'tp;dp' "$long" 'dp,fsdp,tp,pp,cp,dp'; do
  refused_run "option/order ${text:0:40}" 2 '--order: ' "${switched[@]}" --order "$text"
done
refused_run 'option/order on a torus' 2 '--order' --order tp,dp
refused_run 'option/map on switches' 2 '--map' "${switched[@]}" --map fsdp=x
for text in '' ',' '8,' x nan -1 1.5 99999999999999999999; do
  refused_run "option/stage-layers $text" '[23]' '--stage-layers: ' --layout 'pp=4 fsdp=2' --stage-layers "$text"
done
for text in 8,8,8 8,8,8,9 8,8,8,8,0 4294967295,1,1,31 4294967296,1,1,30 18446744073709551615,1,16,16 0,0,0,0; do
  refused_run "option/stage-layers $text" 3 '--stage-layers: ' --layout 'pp=4 fsdp=2' --stage-layers "$text"
done
for text in '' = chip chip. chip.= chip.hbm_bandwidth chip.hbm_bandwidth= chip.hbm_bandwidth=nan chip.hbm_bandwidth=0GB/s chip.hbm_bandwidth=-1GB/s \
  chip.hbm_bandwidth=3350 chip.frobnicate=1 frobnicate=1 chip.cores_per_chip=0 chip.cores_per_chip=99999999999 chip.devices_per_chip=3 topology.frobnicate=1 \
  topology.extent=0x1x1 topology.slices=0 topology.nic=nan topology.=1 topology.extent= model.frobnicate=1 model.layers=0 model.layers=-1 model.layers= \
  model.hidden=nan model.kv_heads=7 model.top_k=9 chip.hbm_bandwidth=1e400GB/s "$long" "chip.$long=1" "chip.hbm_bandwidth=$long" $'chip.\n=1' \
  chip.wrap_rule=x chip.torus_dims=9 'chip.hbm_capacity=1 B' 'chip.reserved_memory=1e30 B' =1 .=1; do
  option set "$text" '--set'
done
for text in -1 x 8 99999999999 '' ',' '0,,1' '0,8' 1.5 "$long"; do
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
refused 'run/experts of a dense model' 2 '' run "${job[@]}" "${files[@]}" --layout 'fsdp=8 ep=2'
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
roofline=(roofline --topology tpu-v5p:2x2x2 --op matmul --shape 'B=8,D=8,F=8' --json out/r.json)
for words in '--op x' '--shape B=8' '--shape B=0,D=8,F=8' '--shape B=-1,D=8,F=8' '--shape B=nan,D=8,F=8' '--shape B=8,B=8,D=8,F=8' '--shape B=8,D=8,F=8,X=1' '--shape ,' '--shape =' \
  '--shape B=1e30,D=8,F=8' '--shape B=8,D=8,F=8,G=0' '--dtype x' '--from x' '--fidelity x' '--set x' '--op attention --shape T=0,S=0,N=0,H=0' \
  '--op vector --shape elements=nan' '--op copy --shape bytes=-1' '--op copy --shape bytes=1e400' "--shape $long" '--op attention --shape T=8,S=8,N=8,K=3,H=8' '--op vector --shape elements=1e308,flops=1e308'; do
  read -ra list <<<"$words"
  refused "roofline/${words:0:40}" '[23]' '' "${roofline[@]}" "${list[@]}"
done

# ---- locale: numbers have a point whatever it says ----

if command -v localedef >/dev/null && localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null; then
  export LOCPATH=$folder
fi
prefix=(env LC_ALL=de_DE.UTF-8)
if is_wanted 'locale/same result'; then
  status=0
  podsim run "${job[@]}" --json german || status=$?
  why=
  [ $status -eq 0 ] || why="exit status $status: $(head -n 1 stderr)"
  cmp -s german good-result || why=${why:-"the result differs"}
  verdict 'locale/same result' "$why"
fi
option price 4,2
option availability 0,5
refused_run 'locale/comma in a rate' 2 '--set ' --set 'chip.hbm_bandwidth=1,2TB/s'

exit "$result"
