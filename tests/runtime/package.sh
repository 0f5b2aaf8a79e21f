#!/bin/sh
# package.sh - what `cmake --install` leaves works by itself: exported names, pkg-config, an engine built outside.
# Usage: package.sh BUILD SOURCE MAKE_STORE COMPILER. Exit 0 when all holds.
set -eu
build=$1 source=$2 make_store=$3 compiler=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() {
    echo "FAIL: $*" >&2
    exit 1
}

cmake --install "$build" --prefix "$place/usr" >"$place/log" 2>&1 || { cat "$place/log" >&2; fail "install"; }
pc=$(find "$place/usr" -name hone.pc)
library=$(find "$place/usr" -name libhone.so)
[ -n "$pc" ] && [ -n "$library" ] || fail "hone.pc or libhone.so is not installed"
for file in include/hone.h include/hone_problem.h include/hone_words.h include/hone_moe.h include/hone_index.h include/hone_scales.h libexec/hone-worker libexec/hone-prover bin/hone; do
    [ -e "$place/usr/$file" ] || fail "$file is not installed"
done
[ -e "$(dirname "$library")/libhone_emu.so" ] || fail "libhone_emu.so is not beside libhone.so"

# Only hone.h's names are exported, and all of them.
nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$place/exported"
sed -n 's/^HONE_API [^(]*[ *]\(hone_[a-z_]*\)(.*/\1/p' "$source"/include/hone.h "$source"/include/hone_problem.h "$source"/include/hone_words.h "$source"/include/hone_scales.h | sort >"$place/declared"
[ -s "$place/declared" ] || fail "no declarations were found in hone.h"
diff "$place/declared" "$place/exported" >&2 || fail "hone.h and libhone.so do not name the same functions"
! readelf -d "$library" | grep -Eq 'NEEDED.*(libcuda|libnvrtc|libcupti)' || fail "a CUDA library is linked"

# An engine outside of the tree, by pkg-config alone (and the CUDA headers, for its own driver calls).
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
cuda=$(sed -n 's/^CUDA_INCLUDE_DIR:PATH=//p' "$build/CMakeCache.txt")
sanitize=$(sed -n 's/^HONE_SANITIZE:STRING=//p' "$build/CMakeCache.txt")
# shellcheck disable=SC2046
(cd "$place" && "$compiler" -std=gnu11 -D_GNU_SOURCE ${sanitize:+-fsanitize=$sanitize} -isystem "$cuda" \
    "$source/examples/serve.c" -o serve $(pkg-config --define-variable=prefix="$place/usr" --cflags --libs hone) -ldl -lm) ||
    fail "an engine does not build by pkg-config"

problem='fp8_gemm:m=48,n=160,k=384,recipe=f32-1x128-128x128,out=f32,a_scale_layout=row,b_scale_layout=row'
"$make_store" "$place/hone.db" "$problem" || fail "the store could not be made"
XDG_CACHE_HOME=$place/cache
LD_LIBRARY_PATH=$(dirname "$library"):${LD_LIBRARY_PATH:-}
export XDG_CACHE_HOME LD_LIBRARY_PATH
"$place/serve" "$place/hone.db" emu:h20 "$problem" >"$place/out" 2>&1 || { cat "$place/out" >&2; fail "the engine failed"; }
grep -q '^served: exact, winner 1, 1234 ns modelled$' "$place/out" || { cat "$place/out" >&2; fail "the winner was not served"; }
cat "$place/out"
