#!/bin/bash
# Fits the kernel surfaces of the chip files to the tables of workloads/measured: make calibrate.
# Environment: PODSIM, the program; CHIPS, the folder that the files go to.
set -eu

cd "$(dirname "$0")/.."
: "${PODSIM:=build/podsim}" "${CHIPS:=topologies/chips}"
measured=workloads/measured

# fit CHIP LIKE TABLE...: LIKE is a chip of the same make for what no table measures, - for none
fit ()
{
  local chip=$1 like=$2 arguments=() table
  shift 2
  [ "$like" = - ] || arguments+=(--like "$CHIPS/$like.xml")
  for table; do
    arguments+=(--table "$measured/$table.tsv.gz")
  done
  "$PODSIM" calibrate kernels --chip "topologies/chips/$chip.xml" "${arguments[@]}" --write "$CHIPS/$chip.xml"
}

mkdir -p "$CHIPS"
fit a100 - gemm-a100 attention-a100
fit a100-40 a100
fit h100 - gemm-h100 attention-h100 attention-decode-h100 moe-h100
fit h100-pcie h100
fit h800 h100
fit h200 h100 gemm-h200
fit b200 - gemm-b200 attention-b200
fit b300 b200
fit gb200 b200 gemm-gb200
fit gb300 gb200
