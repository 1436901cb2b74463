#!/bin/bash
# Fits the library files of topologies/libraries to the tables of workloads/measured: make calibrate.
# Environment: PODSIM, the program; OUT, the folder that the files go to.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}" "${OUT:=topologies/libraries}"
measured=workloads/measured
templates=topologies/libraries/templates

# fit LIBRARY TEMPLATE TABLE:CHIP... [--common]
fit ()
{
  local library=$1 template=$2 arguments=() pair
  shift 2
  for pair; do
    case $pair in
      --common) arguments+=(--common) ;;
      *) arguments+=(--table "$measured/${pair%%:*}.tsv" --chip "${pair##*:}") ;;
    esac
  done
  "$PODSIM" calibrate collectives "${arguments[@]}" --library "$templates/$template.xml" --write "$OUT/$library.xml"
}

mkdir -p "$OUT"
rm -f "$OUT/nccl-2.27.xml" "$OUT/rccl.xml" "$OUT/xla.xml"
fit nccl-2.27 nccl nccl-a100:a100
fit nccl-2.27 nccl nccl-h100:h100 nccl-h200-large:h200 nccl-h100-nodes:h100
fit nccl-2.27 nccl nccl-b200:b200 nccl-b200-large:b200
fit nccl-2.27 nccl nccl-gb200:gb200 nccl-gb200-large:gb200
fit nccl-2.27 nccl nccl-a100:a100 nccl-h100:h100 nccl-b200:b200 nccl-gb200:gb200 --common
fit rccl rccl xla-collectives:mi355x
fit rccl rccl xla-collectives:mi355x --common
fit xla xla xla-collectives:h100
fit xla xla xla-collectives:b200
fit xla xla xla-collectives:gb200
fit xla xla xla-collectives:gb300
fit xla xla xla-collectives:h100 xla-collectives:b200 xla-collectives:gb200 --common
