// scales.cu - probes of the block-scaled mma of sm_120a: which lanes and bytes hold its scales, and
// how it adds.
typedef unsigned u32;
typedef unsigned short u16;

#if __CUDA_ARCH__ == 1200

#define SCALED(scale_vec, kind, shape, types, scales)                                              \
    "mma.sync.aligned.kind::" kind ".block_scale.scale_vec::" scale_vec "." shape                  \
    ".row.col.f32." types ".f32." scales " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, " \
    "{%10}, {%11,%12}, {%13}, {%14,%15};"

#define CHOOSE(byte_a, pair, byte_b, one)                                                          \
    asm volatile(SCALED("1X", "mxf8f6f4", "m16n8k32", "e4m3.e4m3", "ue8m0")                        \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a), "r"(a), "r"(a), "r"(a), "r"(a), "r"(a), "r"(rows), "n"(byte_a), "n"(pair), \
                   "r"(columns), "n"(byte_b), "n"(one))

// Each case has its scales' words, of rows and of columns by lane, and a choice of bytes and lanes.
// With ones in a and b a result is 32 times the two scales: its exponent tells which they were.
extern "C" __global__ void scales(const u32 *in, u32 *out, int cases)
{
    const u32 *at = in + blockIdx.x * 64 + threadIdx.x;
    u32 a = 0x38383838, rows = at[0], columns = at[32]; // e4m3 ones
    float d[4] = {0, 0, 0, 0};
    switch (blockIdx.x % 8) {
    case 0: CHOOSE(0, 0, 0, 0); break;
    case 1: CHOOSE(1, 0, 0, 1); break;
    case 2: CHOOSE(2, 1, 0, 2); break;
    case 3: CHOOSE(3, 1, 0, 3); break;
    case 4: CHOOSE(0, 1, 1, 0); break;
    case 5: CHOOSE(1, 1, 2, 1); break;
    case 6: CHOOSE(2, 0, 3, 2); break;
    default: CHOOSE(3, 0, 1, 3); break;
    }
    for (int k = 0; k < 4; k++) {
        out[blockIdx.x * 128 + k * 32 + threadIdx.x] = __float_as_uint(d[k]);
    }
}

// Operands and c of every size under scales of one: what of the sum is kept.
extern "C" __global__ void mma_scaled(const u32 *in, u32 *out, int cases)
{
    const u32 *at = in + blockIdx.x * 320 + threadIdx.x;
    u32 one = 0x7f7f7f7f;
    float d[4];
    for (int k = 0; k < 4; k++) {
        d[k] = __uint_as_float(at[(6 + k) * 32]);
    }
    asm volatile(SCALED("1X", "mxf8f6f4", "m16n8k32", "e4m3.e4m3", "ue8m0")
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(at[0]), "r"(at[32]), "r"(at[64]), "r"(at[96]), "r"(at[128]), "r"(at[160]),
                   "r"(one), "n"(0), "n"(0), "r"(one), "n"(0), "n"(0));
    for (int k = 0; k < 4; k++) {
        out[blockIdx.x * 128 + k * 32 + threadIdx.x] = __float_as_uint(d[k]);
    }
}

// The same of e2m1 in groups of 16, whose scales are e4m3: lanes' bytes stand for four groups.
extern "C" __global__ void mma_nvf4(const u32 *in, u32 *out, int cases)
{
    const u32 *at = in + blockIdx.x * 384 + threadIdx.x;
    float d[4];
    for (int k = 0; k < 4; k++) {
        d[k] = __uint_as_float(at[(8 + k) * 32]);
    }
    u32 rows = at[192] & 0x7e7e7e7e, columns = at[224] & 0x7e7e7e7e; // neither sign nor NaN
    asm volatile(SCALED("4X", "mxf4nvf4", "m16n8k64", "e2m1.e2m1", "ue4m3")
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(at[0]), "r"(at[32]), "r"(at[64]), "r"(at[96]), "r"(at[128]), "r"(at[160]),
                   "r"(rows), "n"(0), "n"(0), "r"(columns), "n"(0), "n"(0));
    for (int k = 0; k < 4; k++) {
        out[blockIdx.x * 128 + k * 32 + threadIdx.x] = __float_as_uint(d[k]);
    }
}

#endif
