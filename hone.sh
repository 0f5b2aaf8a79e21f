#!/usr/bin/env bash
# hone.sh - sets up what is missing, builds once, then runs.
#
#   ./hone.sh tune [OPTION...]          the main job, end to end (hone tune --help)
#   ./hone.sh test [PRESET...]          the tests: release and asan whole, tsan for what has threads
#   ./hone.sh benchmark [NAME...]       the project's own benchmarks
#   ./hone.sh COMMAND [OPTION...]       any other hone command
#
# HONE_PRESET chooses the build that runs (release). CUDA_HOME chooses a toolkit; without one, and with none in
# the usual places, the vendor's wheels are put into ./.cuda.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
preset=${HONE_PRESET:-release}

# Debian and Ubuntu names; the file or program that shows that a package is there.
packages=(
  "gcc gcc" "g++ g++" "cmake cmake" "ninja-build ninja" "pkg-config pkg-config" "git git" "gnuplot-nox gnuplot" "util-linux setpriv"
  "libsqlite3-dev pc:sqlite3" "libyaml-dev pc:yaml-0.1" "libjansson-dev pc:jansson" "libzstd-dev pc:libzstd"
  "libxxhash-dev pc:libxxhash" "libsodium-dev pc:libsodium" "libuv1-dev pc:libuv" "check pc:check"
)

say() { printf 'hone.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

have() {
  case $1 in
    pc:*) command -v pkg-config >/dev/null && pkg-config --exists "${1#pc:}" ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

apt_install() {
  local sudo=()
  command -v apt-get >/dev/null || die "these are missing and there is no apt-get to install them: $*"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these are missing; run as root or install sudo: $*"
    sudo=(sudo)
  fi
  say "installing $*"
  "${sudo[@]}" apt-get update -qq >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 ||
    die "apt-get could not install: $*"
}

install_packages() {
  local missing=() row
  for row in "${packages[@]}"; do
    have "${row#* }" || missing+=("${row% *}")
  done
  [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
}

# A toolkit is a folder with cuda.h and NVRTC below it.
is_toolkit() {
  [ -n "$1" ] && [ -e "$1/include/cuda.h" ] &&
    { compgen -G "$1/lib64/libnvrtc.so*" || compgen -G "$1/lib/libnvrtc.so*" || compgen -G "$1/targets/*/lib/libnvrtc.so*"; } >/dev/null
}

install_cuda() {
  local nvcc candidates=("${CUDA_HOME:-}") folder wheels=$root/.cuda/nvidia/cu13
  nvcc=$(command -v nvcc || true)
  [ -z "$nvcc" ] || candidates+=("$(dirname "$(dirname "$(readlink -f "$nvcc")")")")
  candidates+=(/usr/local/cuda "$wheels")
  for folder in "${candidates[@]}"; do
    if is_toolkit "$folder"; then
      export CUDA_HOME=$folder
      return
    fi
  done
  [ -z "${CUDA_HOME:-}" ] || die "CUDA_HOME=$CUDA_HOME holds no include/cuda.h and libnvrtc; unset it to use another toolkit"
  python3 -m pip --version >/dev/null 2>&1 || apt_install python3 python3-pip
  say "no CUDA toolkit found; taking the compiler and headers from the vendor's wheels into .cuda (200 MB)"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$root/.cuda" \
    'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-cupti==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' >&2 ||
    die "the wheels could not be installed; install a CUDA toolkit >= 12.9 and set CUDA_HOME"
  is_toolkit "$wheels" || die "the wheels hold no toolkit where it was expected: $wheels"
  export CUDA_HOME=$wheels
}

# The second argument names what of the preset to build; all of it, unless given.
build() {
  local log=$root/build/$1.log
  mkdir -p "$root/build"
  if [ ! -e "$root/build/$1/build.ninja" ]; then
    say "building $1 (once)"
    (cd "$root" && cmake --preset "$1") >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "configuring failed: $log"; }
  fi
  ninja -C "$root/build/$1" "${@:2}" >"$log" 2>&1 || { tail -n 60 "$log" >&2; die "the build failed: $log"; }
}

# release and asan run everything; tsan what has threads. Slow suites are asked for: HONE_SLOW=1.
run_tests() {
  local chosen=("$@") one arguments excluded failed=0
  [ ${#chosen[@]} -gt 0 ] || chosen=(release asan tsan)
  for one in "${chosen[@]}"; do
    arguments=(--output-on-failure --no-tests=error -j "$(nproc)")
    # One -LE: of several, each would have to match.
    excluded=${HONE_SLOW:+none}
    excluded=${excluded:-slow}
    case $one in
      tsan)
        build "$one" threads
        arguments+=(-L '^threads$')
        ;;
      release) build "$one" ;;
      *)
        build "$one"
        excluded+='|release-only'
        ;;
    esac
    arguments+=(-LE "^($excluded)\$")
    say "testing $one"
    (cd "$root/build/$one" && ctest "${arguments[@]}") || failed=1
  done
  return $failed
}

main() {
  install_packages
  install_cuda
  case ${1:-} in
    test)
      shift
      run_tests "$@"
      ;;
    benchmark)
      shift
      build "$preset"
      exec "$root/build/$preset/benchmarks/hone-benchmark" "$@"
      ;;
    *)
      build "$preset"
      exec "$root/build/$preset/cli/hone" "$@"
      ;;
  esac
}

main "$@"
