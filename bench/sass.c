/* sass.c - counts a cubin's instructions, and says what an SM's pipes allow for them. */
#include "bench/sass_parts.h"

#include "core/status.h"

#include <stdlib.h>

/* How many registers an operation writes. */
typedef enum write_rule {
    WRITES_NONE,
    WRITES_ONE,
    WRITES_VECTOR, /* by the width of the access */
    WRITES_MATRIX, /* by the number of matrices */
    WRITES_TILE    /* fp32 accumulators of a product */
} write_rule;

#define NOT_COUNTED SASS_KINDS

/* The last rows are those that make a loop's other values: for the highest register. */
static const struct operation {
    uint32_t bits;
    sass_kind kind;
    write_rule writes;
} operations[] = {
    {0x023, SASS_FFMA, WRITES_ONE},       /* FFMA */
    {0x020, SASS_FMUL, WRITES_ONE},       /* FMUL */
    {0x021, SASS_FADD, WRITES_ONE},       /* FADD */
    {0x1f0, SASS_GMMA, WRITES_TILE},      /* HGMMA */
    {0x1f1, SASS_GMMA, WRITES_TILE},      /* IGMMA */
    {0x1f3, SASS_GMMA, WRITES_TILE},      /* QGMMA */
    {0x03c, SASS_MMA, WRITES_TILE},       /* HMMA */
    {0x037, SASS_MMA, WRITES_TILE},       /* IMMA */
    {0x07a, SASS_MMA, WRITES_TILE},       /* QMMA */
    {0x07f, SASS_MMA, WRITES_TILE},       /* OMMA */
    {0x184, SASS_LDS, WRITES_VECTOR},     /* LDS */
    {0x03b, SASS_LDSM, WRITES_MATRIX},    /* LDSM */
    {0x188, SASS_STS, WRITES_NONE},       /* STS */
    {0x1a7, SASS_SYNCS, WRITES_NONE},     /* SYNCS: phase checks, arrivals */
    {0x1b2, SASS_SYNCS, WRITES_NONE},     /* SYNCS.EXCH */
    {0x1c5, SASS_WARPGROUP, WRITES_NONE}, /* WARPGROUP: arrive, wait */
    {0x183, SASS_LOCAL, WRITES_VECTOR},   /* LDL */
    {0x187, SASS_LOCAL, WRITES_NONE},     /* STL */
    {0x002, NOT_COUNTED, WRITES_ONE},     /* MOV */
    {0x007, NOT_COUNTED, WRITES_ONE},     /* SEL */
    {0x010, NOT_COUNTED, WRITES_ONE},     /* IADD3 */
    {0x011, NOT_COUNTED, WRITES_ONE},     /* LEA */
    {0x012, NOT_COUNTED, WRITES_ONE},     /* LOP3 */
    {0x019, NOT_COUNTED, WRITES_ONE},     /* SHF */
    {0x024, NOT_COUNTED, WRITES_ONE},     /* IMAD */
    {0x03e, NOT_COUNTED, WRITES_ONE},     /* F2FP */
    {0x181, NOT_COUNTED, WRITES_VECTOR},  /* LDG */
};

/* A product: which unit, and the multiply-adds of one warp. */
typedef struct product {
    gpu_mma unit;
    bool wide; /* wgmma */
    double macs;
    int32_t registers; /* accumulators of a thread */
} product;

static const char *const kind_names[] = {
#define X(name, text) [SASS_##name] = text,
    SASS_KIND_MAP(X)
#undef X
};

const char *sass_kind_name(sass_kind kind)
{
    return (size_t)kind < ARRAY_LEN(kind_names) ? kind_names[kind] : "?";
}

static uint64_t bits_of(uint64_t word, unsigned at, unsigned count)
{
    return word >> at & ((UINT64_C(1) << count) - 1);
}

static const struct operation *find_operation(sass_word w)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        if (operations[i].bits == sass_operation(w)) {
            return &operations[i];
        }
    }
    return NULL;
}

/* wgmma is m64nNkK of four warps: N in eights from bit 53, bit 58 says tf32. */
static product wide_product(sass_word w)
{
    const double n = 8.0 * (double)(bits_of(w.low, 53, 5) + 1);
    const bool tf32 = bits_of(w.low, 58, 1) != 0;
    product p = {.wide = true, .registers = (int32_t)(n / 2)};
    double k = 32;

    switch (sass_operation(w)) {
    case 0x1f0:
        p.unit = tf32 ? GPU_MMA_TF32 : GPU_MMA_F16;
        k = tf32 ? 8 : 16;
        break;
    case 0x1f1:
        p.unit = GPU_MMA_S8;
        break;
    default:
        p.unit = GPU_MMA_FP8;
        break;
    }
    p.macs = 64 * n * k / 4;
    return p;
}

/* mma.sync is m16n8kK: bit 75 says the longer K; the form 2 of QMMA takes block scales, has one K,
 * and names there the register that selects them. */
static product narrow_product(sass_word w)
{
    const bool longer = bits_of(w.high, 11, 1) != 0, shortest = bits_of(w.high, 14, 1) != 0;
    product p = {.registers = 4};
    double k = longer ? 32 : 16;

    switch (sass_operation(w)) {
    case 0x03c:
        p.unit = bits_of(w.high, 19, 1) != 0 ? GPU_MMA_TF32 : GPU_MMA_F16;
        k = longer ? 16 : shortest ? 4 : 8;
        break;
    case 0x037:
        p.unit = GPU_MMA_S8;
        break;
    case 0x07a:
        p.unit = bits_of(w.low, 9, 3) == 2 ? GPU_MMA_MXFP8 : GPU_MMA_FP8;
        k = p.unit == GPU_MMA_MXFP8 ? 32 : k;
        break;
    default:
        p.unit = GPU_MMA_FP4;
        k = 64;
        break;
    }
    p.macs = 16 * 8 * k;
    return p;
}

static product product_of(const struct operation *o, sass_word w)
{
    return o->kind == SASS_GMMA ? wide_product(w) : narrow_product(w);
}

bool sass_is_product(sass_word w)
{
    const struct operation *o = find_operation(w);

    return o != NULL && o->writes == WRITES_TILE;
}

static int32_t registers_written(const struct operation *o, sass_word w)
{
    switch (o->writes) {
    case WRITES_ONE:
        return 1;
    case WRITES_VECTOR: /* bits 73-75: 4 is 32 bits, 5 is 64, 6 is 128 */
        return bits_of(w.high, 9, 3) == 6 ? 4 : bits_of(w.high, 9, 3) == 5 ? 2 : 1;
    case WRITES_MATRIX:
        return 1 << bits_of(w.high, 8, 2);
    case WRITES_TILE:
        return product_of(o, w).registers;
    default:
        return 0;
    }
}

void sass_count_add(sass_count *count, sass_word w)
{
    const struct operation *o = find_operation(w);
    const uint64_t target = bits_of(w.low, 16, 8);

    count->instructions++;
    count->stall_clocks += (uint32_t)(bits_of(w.high, 41, 4) > 0 ? bits_of(w.high, 41, 4) : 1);
    if (o == NULL) {
        return;
    }
    if (o->kind != NOT_COUNTED) {
        count->kinds[o->kind]++;
    }
    if (o->writes != WRITES_NONE && target != 255) { /* RZ */
        const int32_t last = (int32_t)target + registers_written(o, w) - 1;
        count->highest_register = last > count->highest_register ? last : count->highest_register;
    }
    if (o->writes == WRITES_TILE) {
        const product p = product_of(o, w);
        *(p.wide ? &count->gmma_macs[p.unit] : &count->mma_macs[p.unit]) += p.macs;
    }
}

hone_status sass_read(const void *cubin, size_t len, const char *lowered, sass_function *out,
                      hone_error *error)
{
    hone_status status = HONE_OK;
    sass_function f = {.all = {.highest_register = -1}};
    sass_code code;

    TRY(sass_find(cubin, len, lowered, &code, error));
    for (uint32_t i = 0; i < code.len; i++) {
        sass_count_add(&f.all, sass_word_at(&code, i));
    }
    TRY(sass_find_loops(&code, &f.loops, &f.loops_len, error));
    *out = f;
done:
    return status;
}

void sass_function_free(sass_function *f)
{
    free(f->loops);
    *f = (sass_function){.loops = NULL};
}

double sass_macs(const sass_count *c)
{
    double macs = 0;

    for (int i = 0; i < GPU_MMA_KINDS; i++) {
        macs += c->gmma_macs[i] + c->mma_macs[i];
    }
    return macs;
}

const sass_loop *sass_main_loop(const sass_function *f)
{
    const sass_loop *best = NULL;

    for (size_t i = 0; i < f->loops_len; i++) {
        const sass_loop *l = &f->loops[i];
        if (l->inner && sass_macs(&l->count) > (best != NULL ? sass_macs(&best->count) : 0)) {
            best = l;
        }
    }
    return best;
}

sass_limits sass_limits_of(const sass_count *loop, const gpu *g, double macs)
{
    const double passes = macs / sass_macs(loop); /* of all warps together */
    sass_limits l = {.tensor_clocks = 0};

    for (int i = 0; i < GPU_MMA_KINDS; i++) {
        if ((loop->gmma_macs[i] > 0 && !(g->flop_per_clk_sm[i] > 0)) ||
            (loop->mma_macs[i] > 0 && !(g->mma_sync_per_clk_sm[i] > 0))) {
            return (sass_limits){.tensor_clocks = 0};
        }
        l.tensor_clocks += loop->gmma_macs[i] > 0 ? loop->gmma_macs[i] / g->flop_per_clk_sm[i] : 0;
        l.tensor_clocks +=
            loop->mma_macs[i] > 0 ? loop->mma_macs[i] / g->mma_sync_per_clk_sm[i] : 0;
    }
    if (!(l.tensor_clocks > 0)) {
        return l;
    }
    const uint32_t fp32 = loop->kinds[SASS_FFMA] + loop->kinds[SASS_FMUL] + loop->kinds[SASS_FADD];
    l.tensor_clocks *= 2 * passes; /* a multiply-add is two FLOP */
    l.fp32_clocks = fp32 * 32 / g->fp32_lanes * passes;
    l.issue_clocks = loop->instructions / g->issue_slots * passes;
    const double most = l.fp32_clocks > l.issue_clocks ? l.fp32_clocks : l.issue_clocks;
    l.tensor_percent = most > l.tensor_clocks ? 100 * l.tensor_clocks / most : 100;
    return l;
}
