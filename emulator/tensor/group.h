/* group.h - m16n8 of a wgmma on the host's vectors: lanes stay where registers have them, since one
 * A meets many B and is laid out for that once. Included once for each host level.
 *
 * A vector holds LANES lanes of one accumulator register: LANES / 4 rows, at each the four columns
 * of its parity. Left values are repeated for the four, right ones for the rows. */

enum {
    GROUP_VECTORS = 2 * 32 / LANES, /* of the accumulators of eight rows: even, odd columns */
    GROUP_BLOCKS = TENSOR_LEVEL == 3 ? 2 : 1, /* whose sums the host's registers hold */
};

#if TENSOR_LEVEL > 1
#define GROUP_SPREAD(x, quad) (vi) VECTOR_CALL(shuffle_epi32)((vector_native)(x), 0x55 * (quad))
#else
#define GROUP_SPREAD(x, quad) __builtin_shufflevector(x, x, quad, quad, quad, quad)
#endif

/* Lane 4g+q to all four lanes of its g. */
VECTOR_INLINE void group_spread(vi out[4], const vi *x)
{
    out[0] = GROUP_SPREAD(*x, 0);
    out[1] = GROUP_SPREAD(*x, 1);
    out[2] = GROUP_SPREAD(*x, 2);
    out[3] = GROUP_SPREAD(*x, 3);
}

/* Four words, over and over. */
VECTOR_INLINE void group_repeat(vi *out, const void *from)
{
#if TENSOR_LEVEL == 3
    *out = (vi)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)from));
#elif TENSOR_LEVEL == 2
    *out = (vi)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)from));
#else
    memcpy(out, from, sizeof *out);
#endif
}

VECTOR_INLINE void group_open_rows(tensor_rows *r, uint32_t elements)
{
    const packing *p = &packings[r->type];
    operand_facts facts = {true, false};

    for (uint32_t n = 0; n < 4 * (32 / LANES); n++) {
        uint32_t reg = n % 4, at = n / 4 * LANES, eight = reg % 2, quads = reg / 2 * 4;
        vi raw, x, spread[4];
        vector_load(&raw, r->raw[reg] + at);
        operand_exponents(&x, &facts, &raw, p, elements);
        group_spread(spread, &x);
        for (uint32_t q = 0; q < 4; q++) {
            memcpy(r->exponents[quads + q][eight] + at, &spread[q], sizeof x);
        }
        VECTOR_UNROLL
        for (uint32_t e = 0; e < elements; e++) {
            operand_values((vf *)&x, &raw, p, e, elements);
            group_spread(spread, &x);
            for (uint32_t q = 0; q < 4; q++) {
                memcpy(r->values[(quads + q) * elements + e][eight] + at, &spread[q], sizeof x);
            }
        }
    }
    r->finite = facts.finite;
    r->any = facts.any;
}

VECTOR_INLINE void group_open_columns(tensor_columns *c, uint32_t elements)
{
    const packing *p = &packings[c->type];
    operand_facts facts = {true, false};
    enum { PART = LANES < 8 ? LANES : 8 }; /* of a quad's eight columns */

    for (uint32_t n = 0; n < 64; n += LANES) {
        _Alignas(64) uint32_t words[LANES], parts[LANES];
        vi raw, x;
        for (uint32_t i = 0; i < LANES; i++) { /* [half][quad][odd][column / 2] */
            uint32_t word = n + i, column = word % 4 * 2 + word / 4 % 2;
            words[i] = c->raw[word / 32][4 * column + word / 8 % 4];
        }
        vector_load(&raw, words);
        operand_exponents(&x, &facts, &raw, p, elements);
        memcpy((int32_t *)c->exponents + n, &x, sizeof x);
        VECTOR_UNROLL
        for (uint32_t e = 0; e < elements; e++) {
            operand_values((vf *)&x, &raw, p, e, elements);
            memcpy(parts, &x, sizeof x);
            for (uint32_t i = 0; i < LANES; i += PART) {
                memcpy((float *)c->values[(n + i) / 8 * elements + e] + (n + i) % 8, parts + i,
                       PART * sizeof *parts);
            }
        }
    }
    c->finite = facts.finite;
    c->any = facts.any;
}

/* Accumulators of rows 8 * eight and on: vector odd * (32 / LANES) + v. */
VECTOR_INLINE void group_load(vi acc[GROUP_VECTORS], const uint32_t *const *c, uint32_t eight)
{
    for (uint32_t j = 0; j < GROUP_VECTORS; j++) {
        uint32_t odd = j / (32 / LANES), at = j % (32 / LANES) * LANES;
        vector_load(&acc[j], c[2 * eight + odd] + at);
    }
}

VECTOR_INLINE void group_store(uint32_t *const *d, const vi acc[GROUP_VECTORS], uint32_t eight)
{
    for (uint32_t j = 0; j < GROUP_VECTORS; j++) {
        uint32_t odd = j / (32 / LANES), at = j % (32 / LANES) * LANES;
        memcpy(d[2 * eight + odd] + at, &acc[j], sizeof acc[j]);
    }
}

/* sum = a * b + sum, rounded once. As an instruction and not a builtin: compilers load `a` anew at
 * each use and move sums around. */
VECTOR_INLINE void group_fma(vi *sum, const vf *a, const vf *b)
{
#if TENSOR_LEVEL == 3
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(*a), "v"(*b));
#elif TENSOR_LEVEL == 2
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(*a), "x"(*b));
#else
    for (size_t i = 0; i < LANES; i++) {
        (*(vf *)sum)[i] = fmaf((*a)[i], (*b)[i], (*(vf *)sum)[i]);
    }
#endif
}

/* DO(v) for each vector of a column's sixteen rows. Written out: of an array that a loop goes
 * through the compiler keeps nothing in registers. */
#define GROUP_FOUR(DO, v) DO((v)) DO((v) + 1) DO((v) + 2) DO((v) + 3)
#if LANES == 16
#define GROUP_EACH(DO) GROUP_FOUR(DO, 0)
#elif LANES == 8
#define GROUP_EACH(DO) GROUP_FOUR(DO, 0) GROUP_FOUR(DO, 4)
#else
#define GROUP_EACH(DO) GROUP_FOUR(DO, 0) GROUP_FOUR(DO, 4) GROUP_FOUR(DO, 8) GROUP_FOUR(DO, 12)
#endif
/* Where vector v of an accumulator's even or odd columns lies: its register, and the lane. */
#define GROUP_AT(registers, v, odd)                                                                \
    ((registers)[(v) / (32 / LANES) * 2 + (odd)] + (v) % (32 / LANES) * LANES)

#define GROUP_LOAD(v)                                                                              \
    vector_load(&even_sums[v], GROUP_AT(c, v, 0));                                                 \
    vector_load(&odd_sums[v], GROUP_AT(c, v, 1));
#define GROUP_LOAD_NEXT(v)                                                                         \
    vector_load(&next_even_sums[v], GROUP_AT(c + 4, v, 0));                                        \
    vector_load(&next_odd_sums[v], GROUP_AT(c + 4, v, 1));
#define GROUP_ROW(v)                                                                               \
    {                                                                                              \
        vf a;                                                                                      \
        memcpy(&a, left + (v)*LANES, sizeof a);                                                    \
        group_fma(&even_sums[v], &a, &even);                                                       \
        group_fma(&odd_sums[v], &a, &odd);                                                         \
        if (two) {                                                                                 \
            group_fma(&next_even_sums[v], &a, &next_even);                                         \
            group_fma(&next_odd_sums[v], &a, &next_odd);                                           \
        }                                                                                          \
    }
#define GROUP_STORE(v)                                                                             \
    memcpy(GROUP_AT(d, v, 0), &even_sums[v], sizeof even_sums[v]);                                 \
    memcpy(GROUP_AT(d, v, 1), &odd_sums[v], sizeof odd_sums[v]);
#define GROUP_STORE_NEXT(v)                                                                        \
    memcpy(GROUP_AT(d + 4, v, 0), &next_even_sums[v], sizeof next_even_sums[v]);                   \
    memcpy(GROUP_AT(d + 4, v, 1), &next_odd_sums[v], sizeof next_odd_sums[v]);

/* All sixteen rows of up to two blocks of columns at once: as many sums as hide a multiply-add's
 * latency, and as many uses of a row's values as loads of them cost. */
VECTOR_INLINE void group_fast(uint32_t *const *d, const tensor_group_call *call, uint32_t elements,
                              bool two)
{
    const tensor_columns *columns = call->columns, *next = columns + two;
    const uint32_t *const *c = call->c;
    vi even_sums[64 / LANES], odd_sums[64 / LANES];
    vi next_even_sums[64 / LANES], next_odd_sums[64 / LANES];

    GROUP_EACH(GROUP_LOAD)
    if (two) {
        GROUP_EACH(GROUP_LOAD_NEXT)
    }
    for (uint32_t k = 0; k < 8 * elements; k++) {
        const float *left = call->rows->values[k][0];
        vf even, odd, next_even, next_odd;
        group_repeat((vi *)&even, columns->values[k][0]);
        group_repeat((vi *)&odd, columns->values[k][1]);
        group_repeat((vi *)&next_even, next->values[k][0]);
        group_repeat((vi *)&next_odd, next->values[k][1]);
        GROUP_EACH(GROUP_ROW)
    }
    GROUP_EACH(GROUP_STORE)
    if (two) {
        GROUP_EACH(GROUP_STORE_NEXT)
    }
}

/* The largest exponents of products, and the steps' scales. */
VECTOR_INLINE bool group_align(tile_step steps[GROUP_VECTORS], const vi acc[GROUP_VECTORS],
                               const tensor_group_call *call, uint32_t eight, uint32_t elements)
{
    vi most[GROUP_VECTORS];
    step_constants fixed;
    bool wide = elements < 4 && call->rows->any && call->columns->any, good = true;

    VECTOR_UNROLL
    for (uint32_t q = 0; q < 8; q++) {
        VECTOR_UNROLL
        for (uint32_t j = 0; j < GROUP_VECTORS; j++) {
            vi a, b;
            memcpy(&a, call->rows->exponents[q][eight] + j % (32 / LANES) * LANES, sizeof a);
            group_repeat(&b, call->columns->exponents[q][j / (32 / LANES)]);
            step_add_exponents(&b, &a, &b, elements);
            if (q == 0) {
                most[j] = b;
            } else {
                step_max_exponents(&most[j], &b, elements);
            }
        }
    }
    step_fix(&fixed, call->unit.fraction);
    for (uint32_t j = 0; j < GROUP_VECTORS; j++) {
        step_unpack_most(&most[j], elements);
        steps[j].most = most[j];
        good = step_scales(&steps[j], &acc[j], &fixed, wide) && good;
    }
    return good;
}

/* Terms of four quads in int32 sums: no more fit. */
VECTOR_INLINE void group_terms(vi sums[GROUP_VECTORS], const tile_step steps[GROUP_VECTORS],
                               const tensor_group_call *call, uint32_t eight, uint32_t first,
                               uint32_t elements)
{
    for (uint32_t q = first; q < first + 4; q++) {
        VECTOR_UNROLL
        for (uint32_t e = 0; e < elements; e++) {
            uint32_t k = q * elements + e;
            VECTOR_UNROLL
            for (uint32_t j = 0; j < GROUP_VECTORS; j++) {
                vf a, b;
                memcpy(&a, call->rows->values[k][eight] + j % (32 / LANES) * LANES, sizeof a);
                group_repeat((vi *)&b, call->columns->values[k][j / (32 / LANES)]);
                a = a * b * steps[j].scale;
                sums[j] += __builtin_convertvector(a, vi);
            }
        }
    }
}

VECTOR_INLINE bool group_hw(uint32_t *const *d, const tensor_group_call *call, uint32_t elements)
{
    vi acc[2][GROUP_VECTORS];

    for (uint32_t eight = 0; eight < 2; eight++) {
        tile_step steps[GROUP_VECTORS] = {{.n = 0}};
        vi sums[2][GROUP_VECTORS] = {{{0}}};
        group_load(acc[eight], call->c, eight);
        if (!group_align(steps, acc[eight], call, eight, elements)) {
            return false;
        }
        group_terms(sums[0], steps, call, eight, 0, elements);
        group_terms(sums[1], steps, call, eight, 4, elements);
        for (uint32_t j = 0; j < GROUP_VECTORS; j++) {
            vf c = (vf)acc[eight][j] * steps[j].scale;
            vi parts[3] = {sums[0][j], sums[1][j], __builtin_convertvector(c, vi)};
            step_round(&acc[eight][j], &steps[j], parts, call->unit.mantissa);
        }
    }
    group_store(d, acc[0], 0);
    group_store(d, acc[1], 1);
    return true;
}

VECTOR_INLINE bool group_work(uint32_t *const *d, const tensor_group_call *call, uint32_t elements)
{
    bool two = call->blocks == 2;

    if (!call->rows->finite || !call->columns[0].finite || (two && !call->columns[1].finite) ||
        (two && (GROUP_BLOCKS == 1 || call->mode == HONE_EMU_HW))) {
        return false;
    }
    if (call->mode == HONE_EMU_HW) {
        if ((uint32_t)call->unit.terms != 8 * elements || !step_knows(&call->unit)) {
            return false;
        }
        return group_hw(d, call, elements);
    }
    if (two) {
        group_fast(d, call, elements, true);
    } else {
        group_fast(d, call, elements, false);
    }
    return true;
}

/* The widths are compiled apart, so that their loops have constant bounds. */
static void group_rows(tensor_rows *r)
{
    switch (tensor_elements(r->type)) {
    case 4:
        group_open_rows(r, 4);
        break;
    case 2:
        group_open_rows(r, 2);
        break;
    default:
        group_open_rows(r, 1);
    }
}

static void group_columns(tensor_columns *c)
{
    switch (tensor_elements(c->type)) {
    case 4:
        group_open_columns(c, 4);
        break;
    case 2:
        group_open_columns(c, 2);
        break;
    default:
        group_open_columns(c, 1);
    }
}

static bool group_run(uint32_t *const *d, const tensor_group_call *call)
{
    switch (tensor_elements(call->rows->type)) {
    case 4:
        return group_work(d, call, 4);
    case 2:
        return group_work(d, call, 2);
    default:
        return group_work(d, call, 1);
    }
}
