#!/usr/bin/env bash
# Asks a GPU what no manual says to the last bit, and compares it with the emulator.
#
#   scripts/device-check.sh pack [PRESET]   here: build, and gather what the GPU machine needs in build/device-check/
#   scripts/device-check.sh run [FOLDER]    there: ask cuda:0 and the emulator, compare, time; results in FOLDER
#
# The gathered folder is whole in itself (libraries beside the programs) but for the GPU machine's own driver and
# NVRTC. What the GPU answers lies in FOLDER/cuda/*.golden; put into tests/data/golden/, it is what the tests hold
# the emulator to from then on.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packed=$root/build/device-check

# Everything that a program loads and that is not part of every system's C library.
libraries_of() {
  ldd "$1" | awk '$3 ~ /^\// {print $3}' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[^/]*)\.so' || true
}

pack() {
  local preset=${1:-release} built=$root/build/${1:-release} file
  (cd "$root" && { [ -e "$built/build.ninja" ] || cmake --preset "$preset"; } &&
    ninja -C "$built" hone-device-check hone-worker hone-prover hone_emu hone)
  rm -rf "$packed"
  mkdir -p "$packed/bin" "$packed/lib"
  cp "$built/tests/hone-device-check" "$built/cli/hone" "$packed/bin/"
  find "$built" \( -name hone-worker -o -name hone-prover \) -type f -exec cp {} "$packed/bin/" \;
  find "$built" -name 'libhone*.so*' -exec cp -P {} "$packed/lib/" \;
  for file in "$packed"/bin/*; do
    for library in $(libraries_of "$file"); do cp -Ln "$library" "$packed/lib/"; done
  done
  cp "$root/scripts/device-check.sh" "$packed/"
  du -sh "$packed"
}

# $1: folder of the programs, $2: of the libraries, $3: where results go.
ask_both() {
  export LD_LIBRARY_PATH=$2${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export HONE_EMU_PATH=$2/libhone_emu.so HONE_WORKER=$1/hone-worker HONE_PROVER=$1/hone-prover
  local real=cuda:0 twin=${HONE_DEVICE_TWIN:-emu:h200} failed=0
  mkdir -p "$3/cuda" "$3/emulated"
  "$1/hone" devices | tee "$3/devices.txt"
  # What a probe expects of barriers may be wrong: then it hangs, and the ones before it have answered.
  timeout 900 "$1/hone-device-check" ask "$real" "$3/cuda" | tee "$3/ask-cuda.txt" || failed=1
  "$1/hone-device-check" ask "$twin" "$3/emulated" | tee "$3/ask-emulated.txt" || failed=1
  "$1/hone-device-check" compare "$3/cuda" "$3/emulated" | tee "$3/compare.txt" || failed=1
  # A proof and a time of each op, and of the products' recipes for many rows and for few. (Bits of the products' kernels
  # are among what was asked and compared.)
  local problem
  while read -r problem; do
    "$1/hone" bench --device "$real" --problem "$problem" | tee -a "$3/bench.txt" || failed=1
  done <<'PROBLEMS'
fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-128x128
fp8_gemm:m=4096,n=7168,k=2048,recipe=ue8m0-1x32-32x32
fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x32-128x128
fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-1x128,out=f32,accumulate=1
fp8_gemm:m=16,n=7168,k=2048,recipe=f32-1x128-128x128
fp8_gemm:m=16,n=7168,k=2048,recipe=ue8m0-1x32-32x32
fp8_gemm:m=16,n=7168,k=2048,recipe=f32-1x128-e2m1/ue8m0/1x32
act_quant:m=4096,k=7168
act_quant:m=4096,k=7168,group=32,scale=ue8m0
weight_quant:n=4096,k=7168
kv_quant:tokens=64,pages=64,record=v41_528-split-pow2_amax-v1
kv_quant:tokens=4096,pages=256,record=v41_528-split-pow2_amax-v1
kv_gather:tokens=4096,pages=256,record=v41_528-split-pow2_amax-v1
PROBLEMS
  # The shapes whose rates DeepGEMM published (H800, README of April 2025), theirs beside ours.
  local m n k rate
  while read -r m n k rate; do
    "$1/hone" bench --device "$real" --problem "fp8_gemm:m=$m,n=$n,k=$k,recipe=f32-1x128-128x128" |
      tee -a "$3/published.txt" || failed=1
    echo "m=$m n=$n k=$k: $rate TFLOP/s published for DeepGEMM on an H800" | tee -a "$3/published.txt"
  done <<'PUBLISHED'
64 2112 7168 206
64 24576 1536 289
64 32768 512 219
64 7168 16384 336
64 4096 7168 287
64 7168 2048 295
128 2112 7168 352
128 24576 1536 535
128 32768 512 358
128 7168 16384 645
128 4096 7168 533
128 7168 2048 510
4096 2112 7168 1127
4096 24576 1536 1212
4096 32768 512 775
4096 7168 16384 1520
4096 4096 7168 1410
4096 7168 2048 1168
PUBLISHED
  library_times "$3/published.txt" | tee "$3/cublaslt.txt" || failed=1
  return $failed
}

# cuBLASLt's time for the same shapes, one scale a tensor (what it has on every version), where PyTorch is there to ask
# it: cold L2, events, the median of 32. $1: published.txt, whose shapes are taken.
library_times() {
  python3 -c 'import torch; torch.cuda.init()' 2>/dev/null || { echo "no PyTorch with CUDA: cuBLASLt is not timed"; return 0; }
  sed -n 's/^m=\([0-9]*\) n=\([0-9]*\) k=\([0-9]*\):.*/\1 \2 \3/p' "$1" | python3 -c '
import statistics, sys, torch
flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
one = torch.ones((), device="cuda")
for line in sys.stdin:
    m, n, k = map(int, line.split())
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    times = []
    for i in range(35):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    us = statistics.median(times[3:])
    print(f"m={m} n={n} k={k}: cuBLASLt {us:.1f} us, {2e-6 * m * n * k / us:.0f} TFLOP/s")
'
}

case ${1:-} in
  pack) pack "${2:-release}" ;;
  run)
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    [ -d "$here/bin" ] || here=$packed
    ask_both "$here/bin" "$here/lib" "${2:-${OUT:-$here/results}}"
    ;;
  *)
    sed -n '2,10p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
