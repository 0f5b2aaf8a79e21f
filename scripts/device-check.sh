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
    ninja -C "$built" hone-device-check hone-worker hone_emu hone)
  rm -rf "$packed"
  mkdir -p "$packed/bin" "$packed/lib"
  cp "$built/tests/hone-device-check" "$built/cli/hone" "$packed/bin/"
  find "$built" -name hone-worker -type f -exec cp {} "$packed/bin/" \;
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
  export HONE_EMU_PATH=$2/libhone_emu.so HONE_WORKER=$1/hone-worker
  local real=cuda:0 twin=${HONE_DEVICE_TWIN:-emu:h200} failed=0
  mkdir -p "$3/cuda" "$3/emulated"
  "$1/hone" devices | tee "$3/devices.txt"
  # What a probe expects of barriers may be wrong: then it hangs, and the ones before it have answered.
  timeout 900 "$1/hone-device-check" ask "$real" "$3/cuda" | tee "$3/ask-cuda.txt" || failed=1
  "$1/hone-device-check" ask "$twin" "$3/emulated" | tee "$3/ask-emulated.txt" || failed=1
  "$1/hone-device-check" compare "$3/cuda" "$3/emulated" | tee "$3/compare.txt" || failed=1
  # A proof and a time of each op, and of the products' recipes for many rows and for few.
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
  return $failed
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
