#!/usr/bin/env python3
"""Seeds for the fuzzers: corpus.py DIRECTORY.

Writes DIRECTORY/ptx: the PTX that NVRTC makes of small kernels (where NVRTC is found), and one small
kernel for each row of the handlers' tables; and DIRECTORY/ptx.dict: words of the language.
"""
import ctypes
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVRTC = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"]

HEAD = """.version 8.8
.target sm_90a
.address_size 64
.global .align 16 .b8 g[256];
.visible .entry k(.param .u64 data, .param .u32 n)
{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %x<30>; .reg .b128 %q<3>;
.shared .align 128 .b8 s[1024]; .local .align 8 .b8 l[64];
ld.param.u64 %x0, [data]; mov.u32 %r0, %tid.x; mov.u32 %r30, s;
"""

KERNELS = {
    "sum": """__global__ void k(float *y, const float *x, int n) {
        __shared__ float s[64]; int t = threadIdx.x; float a = 0;
        for (int i = t; i < n; i += blockDim.x) a += x[i] * 2.0f;
        s[t] = a; __syncthreads();
        for (int d = 32; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (t == 0) atomicAdd(y, s[0]); }""",
    "branches": """__device__ __noinline__ int f(int a, int *b) { return a > 3 ? b[a & 7] : a * a; }
        __global__ void k(int *y, int n) { int t = threadIdx.x, v = f(t, y);
        switch (v & 7) { case 0: v += 1; break; case 1: v ^= 7; break; case 2: v = -v; break;
        case 3: v <<= 2; break; case 4: v = __popc(v); break; case 5: v = __clz(v); break; default: v = n; }
        while (v > n) v -= n; y[t] = __shfl_xor_sync(~0u, v, 3) + __ballot_sync(~0u, v & 1); }""",
    "print": """#include <cstdio>
        __global__ void k(int *y) { if (y[0] == 1) printf("%d %s %f\\n", y[1], "a", 1.5); y[threadIdx.x] = 2; }""",
    "doubles": """__global__ void k(double *y, unsigned long long *z) { int t = threadIdx.x;
        y[t] = sqrt(y[t]) / 3.0 + (double)z[t]; z[t] = __umul64hi(z[t], 77) % 1000; }""",
}

STATEMENTS = [
    "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%x0+16]; st.global.v4.u32 [%x0], {%r1,%r2,%r3,%r4};",
    "ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%x0]; st.global.b128 [%x0], %q1;",
    "atom.global.add.v2.f32 {%r1,%r2}, [%x0], {%r3,%r4}; atom.global.cas.b128 %q0, [%x0], %q1, %q2;",
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%r30];",
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r30], {%r1,%r2}; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r3,%r4,%r5,%r6}, {%r7,%r8}, {%r1,%r2};",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%r9,%r10}, {%r1,%r2,%r3,%r4};",
    "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
    "{%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%r9,%r10}, {%r1,%r2,%r3,%r4}, %r11, {0, 1}, %r12, {0, 3};",
    "mbarrier.init.shared::cta.b64 [s], 32; bar.sync 0; mbarrier.arrive.shared::cta.b64 %x3, [s]; "
    "W: mbarrier.try_wait.shared::cta.b64 %p1, [s], %x3; @!%p1 bra W;",
    "mbarrier.init.shared::cta.b64 [s], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 64; "
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+128], [%x0], 64, [s];",
    "cp.async.cg.shared.global [%r30], [%x0], 16; cp.async.commit_group; cp.async.wait_group 0;",
    "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mapa.shared::cluster.u32 %r1, %r30, 0;",
    "shfl.sync.bfly.b32 %r1|%p1, %r0, 1, 31, -1; vote.sync.ballot.b32 %r2, %p1, -1; match.any.sync.b32 %r3, %r0, -1;",
    "bar.sync 1, 64; bar.red.popc.u32 %r1, 0, %p1; bar.warp.sync -1; elect.sync %r2|%p2, -1;",
    "add.cc.u32 %r1, %r2, %r3; addc.u32 %r4, %r5, %r6; mad.lo.cc.u32 %r1, %r2, %r3, %r4;",
    "{ .reg .b32 %r1; ts: .branchtargets A, B; brx.idx %r0, ts; A: mov.u32 %r1, 1; B: }",
    "createpolicy.fractional.L2::evict_last.b64 %x4, 1.0; ld.global.L2::cache_hint.u32 %r1, [%x0], %x4;",
    "setmaxnreg.inc.sync.aligned.u32 232; griddepcontrol.wait; fence.proxy.async; nanosleep.u32 20;",
    "setp.lt.and.f16x2 %p1|%p2, %r1, %r2, %p3; cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2; set.eq.f16x2.f16x2 %r4, %r1, %r2;",
]


def compile_kernel(nvrtc, source, arch):
    program = ctypes.c_void_p()
    size = ctypes.c_size_t()
    option = (ctypes.c_char_p * 1)(("--gpu-architecture=" + arch).encode())
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None):
        return None
    if nvrtc.nvrtcCompileProgram(program, 1, option):
        return None
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    return text.value.decode()


def rows():
    """(name, signature) of every row of the .def files that is written out whole."""
    for path in sorted((ROOT / "emulator/exec").glob("*.def")):
        for names, signature in re.findall(r'"([a-z][^"#]*)",\s*"([wdp]+=[wdp]*)"', path.read_text()):
            for name in names.split():
                yield name, signature


def row_text(name, signature):
    results, sources = signature.split("=")
    letters = {"w": "%%r%d", "d": "%%x%d", "p": "%%p%d"}
    operands = [letters[kind] % (n + 1) for n, kind in enumerate(results + sources)]
    return "%s%s %s;\nret;\n}\n" % (HEAD, name, ", ".join(operands))


def main():
    out = pathlib.Path(sys.argv[1])
    (out / "ptx").mkdir(parents=True, exist_ok=True)
    nvrtc = None
    for name in NVRTC:
        try:
            nvrtc = nvrtc or ctypes.CDLL(name)
        except OSError:
            pass
    for name, source in KERNELS.items() if nvrtc else []:
        text = compile_kernel(nvrtc, source, "sm_90a")
        if text:
            (out / "ptx" / ("nvrtc_" + name)).write_text(text)
    for n, statement in enumerate(STATEMENTS):
        (out / "ptx" / ("statement_%02d" % n)).write_text("%s%s\nret;\n}\n" % (HEAD, statement))
    words = set()
    for n, (name, signature) in enumerate(rows()):
        words.add(name)
        if n % 7 == 0:
            (out / "ptx" / ("row_%04d" % n)).write_text(row_text(name, signature))
    for statement in STATEMENTS:
        words.update(re.findall(r"[a-z_][\w.:]+|%\w+", statement))
    words.update([".reg .b32 ", ".param .b64 ", ".shared ", ".global ", "@%p1 ", "@!%p1 ", "call.uni ", "ret;"])
    (out / "ptx.dict").write_text("".join('"%s"\n' % w for w in sorted(words)))


if __name__ == "__main__":
    main()
