#!/usr/bin/env python3
"""Seeds for the fuzzers: corpus.py DIRECTORY.

Writes DIRECTORY/ptx: the PTX that NVRTC makes of small kernels (where NVRTC is found), and one small
kernel for each row of the handlers' tables; kernels of clusters, mbarriers and tensor maps, by hand
and from tests/emulator/hopper; and DIRECTORY/ptx.dict: words of the language.
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


# A pair of CTAs, and maps of ranks 1 to 5 (ptx_target.c makes them).
PAIR = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n, .param .align 64 .b8 m1[128], .param .align 64 .b8 m2[128],
.param .align 64 .b8 m3[128], .param .align 64 .b8 m4[128], .param .align 64 .b8 m5[128])
.reqnctapercluster 2, 1, 1 .reqntid 128, 1, 1
{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %x<30>; .shared .align 1024 .b8 s[4096];
ld.param.u64 %x0, [data]; mov.u32 %r0, %tid.x; mov.u32 %r30, s; mov.u32 %r20, 0; mov.u32 %r21, %cluster_ctarank;
mov.b64 %x1, m1; mov.b64 %x2, m2; mov.b64 %x3, m3; mov.b64 %x4, m4; mov.b64 %x5, m5; mov.b16 %h1, 3;
cvta.param.u64 %x1, %x1; cvta.param.u64 %x2, %x2; cvta.param.u64 %x3, %x3; cvta.param.u64 %x4, %x4; cvta.param.u64 %x5, %x5;
mov.u32 %r1, 1; mov.u64 %x9, 64;
setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p2, %r21, 0; xor.b32 %r22, %r21, 1; mapa.shared::cluster.u32 %r23, %r30, %r22;
@%p0 mbarrier.init.shared::cta.b64 [s], 1; @%p0 mbarrier.init.shared::cta.b64 [s+8], 1;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
TAIL = """
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
}
"""
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], 0; @!%p1 bra W;"
LANDED = ".mbarrier::complete_tx::bytes"
# What maps of each rank move: a box of 8 floats, 2 in the dimensions above it (1 in the fifth).
BOX_BYTES = [32, 64, 128, 256, 256]


def expect(bytes_):
    return "@%%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], %d;\n" % bytes_


def place(rank, first="%r20"):
    return "{%s}" % ", ".join([first] + ["%r20"] * (rank - 1))


PAIRS = [
    expect(BOX_BYTES[rank - 1])
    + "@%%p0 cp.async.bulk.tensor.%dd.shared::cluster.global.tile%s [s+1024], [%%x%d, %s], [s];\n%s"
    % (rank, LANDED, rank, place(rank), WAIT)
    for rank in range(1, 6)
] + [
    "shl.b32 %%r2, %%r0, 2; add.u32 %%r2, %%r2, %%r30; st.shared.u32 [%%r2+1024], %%r0; fence.proxy.async.shared::cta; bar.sync 0;\n"
    "and.pred %%p0, %%p0, %%p2; @%%p0 %s.%dd.global.shared::cta%s.tile.bulk_group [%%x%d, %s], [s+1024];\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group%s 0;"
    % (name, rank, change, rank, place(rank), read)
    for rank, name, change, read in [
        (1, "cp.async.bulk.tensor", "", ""),
        (3, "cp.async.bulk.tensor", "", ".read"),
        (5, "cp.async.bulk.tensor", "", ""),
        (2, "cp.reduce.async.bulk.tensor", ".add", ".read"),
        (4, "cp.reduce.async.bulk.tensor", ".min", ""),
    ]
] + [
    expect(64) + "and.pred %%p3, %%p0, %%p2;\n@%%p3 cp.async.bulk.tensor.2d.shared::cluster.global.tile%s"
    ".multicast::cluster.L2::cache_hint [s+1024], [%%x2, {%%r20, %%r20}], [s], %%h1, %%x9;\n%s" % (LANDED, WAIT),
    expect(64) + "@%%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4%s [s+1024], "
    "[%%x2, {%%r20, %%r20, %%r20, %%r20, %%r20}], [s];\n%s" % (LANDED, WAIT),
    "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%x2, {%r20, 0, 1, 2, 3}], [s+1024];\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
    expect(64) + "@%%p0 cp.async.bulk.tensor.4d.shared::cluster.global.im2col%s [s+1024], "
    "[%%x4, {%%r20, %%r20, %%r20, %%r20}], [s], {%%h1, %%h1};\n%s" % (LANDED, WAIT),
    expect(64) + "@%%p0 st.shared.v2.u64 [s+1024], {%%x9, %%x9}; @%%p0 fence.proxy.async.shared::cta;\n"
    "@%%p0 cp.async.bulk.shared::cluster.shared::cta%s [%%r23+2048], [s+1024], 16, [%%r23];\n"
    "@%%p0 cp.async.bulk.shared::cluster.global%s [s+3072], [%%x0], 48, [s];\n%s" % (LANDED, LANDED, WAIT),
    "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];\n" + WAIT,
    "@%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r23], 16;\n"
    "@%p0 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r23+64], {%r1,%r1,%r1,%r1}, [%r23];\n" + WAIT,
    expect(4) + "@%p0 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r23+64], %r1, [%r23];\n" + WAIT,
    "cp.async.ca.shared.global [%r30+1024], [%x0], 16; @%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [s];\n" + WAIT,
    "@%p0 mbarrier.arrive_drop.shared.b64 %x9, [s]; mbarrier.pending_count.b64 %r1, %x9; @%p0 mbarrier.inval.shared::cta.b64 [s];",
    "@%p0 st.shared::cluster.u32 [%r23+64], %r0; bar.warp.sync -1; ld.shared::cluster.u32 %r1, [%r23+64]; "
    "atom.relaxed.cluster.shared::cluster.add.u32 %r2, [%r23+64], 1;",
    "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned; getctarank.shared::cluster.u32 %r1, %r23; "
    "mov.u32 %r2, %cluster_nctaid.x; mov.u32 %r3, %clusterid.x; mov.u32 %r4, %cluster_ctaid.x;",
    "shl.b32 %r2, %r0, 2; cvt.u64.u32 %x6, %r2; add.u64 %x6, %x6, %x2; add.u32 %r2, %r2, %r30; setp.lt.u32 %p3, %r0, 32;\n"
    "@%p3 ld.u32 %r3, [%x6]; @%p3 st.shared.u32 [%r2+1024], %r3; bar.sync 0; @!%p3 bra E;\n"
    "@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s+1024], %x0;\n"
    "@%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s+1024], 1, 3; bar.warp.sync -1;\n"
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%x0+1024], [s+1024], 128;\n"
    "fence.proxy.tensormap::generic.acquire.gpu [%x0+1024], 128; E: ",
    "prefetch.tensormap [%x2]; @%p0 cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%x3, {%r20, %r20, %r20}]; "
    "cp.async.bulk.prefetch.L2.global [%x0], 64;",
    "mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%r1,%r2,%r3,%r4}, %x9, %x9, 0, 1, 1;\n"
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
]


def hopper_kernels():
    """(name, source) of the kernels that tests/emulator/hopper breaks on purpose, here whole."""
    directory = ROOT / "tests/emulator/hopper"
    shared = (directory / "hopper.cuh").read_text()
    for path in sorted(directory.glob("*.cu")):
        yield "hopper_" + path.stem, shared + path.read_text()


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
    for name, source in list(KERNELS.items()) + list(hopper_kernels()) if nvrtc else []:
        text = compile_kernel(nvrtc, source, "sm_90a")
        if text:
            (out / "ptx" / ("nvrtc_" + name)).write_text(text)
    for n, statement in enumerate(STATEMENTS):
        (out / "ptx" / ("statement_%02d" % n)).write_text("%s%s\nret;\n}\n" % (HEAD, statement))
    for n, statement in enumerate(PAIRS):
        (out / "ptx" / ("pair_%02d" % n)).write_text(PAIR + statement + TAIL)
    words = set()
    for n, (name, signature) in enumerate(rows()):
        words.add(name)
        if n % 7 == 0:
            (out / "ptx" / ("row_%04d" % n)).write_text(row_text(name, signature))
    for statement in STATEMENTS + PAIRS + [PAIR]:
        words.update(re.findall(r"[a-z_][\w.:]+|%\w+", statement))
    words.update([".reg .b32 ", ".param .b64 ", ".shared ", ".global ", "@%p1 ", "@!%p1 ", "call.uni ", "ret;"])
    (out / "ptx.dict").write_text("".join('"%s"\n' % w for w in sorted(words)))


if __name__ == "__main__":
    main()
