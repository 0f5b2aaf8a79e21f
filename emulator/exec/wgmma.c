/* wgmma.c - wgmma.mma_async: each warp of a warpgroup computes its own 16 of the 64 rows. */
#include "emulator/exec/wgmma.h"
#include "emulator/exec/exec.h"
#include "emulator/machine/access.h"
#include "emulator/machine/wide.h"

#include "core/status.h"

#include <stdlib.h>

/* One warp's part of a product while it is done. */
typedef struct product {
    const instruction *i;
    const uint32_t *registers; /* of D */
    bool accumulates;
    tensor_columns *columns;
    wgmma_matrix a_matrix, b_matrix;
    wgmma_read read; /* of B */
    tensor_group_call call;
} product;

static uint32_t rank_of(const warp *w)
{
    return w->index % WGMMA_GROUP;
}

MACHINE_WIDEST static bool is_uniform(const uint64_t lanes[MACHINE_LANES])
{
    uint64_t differs = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        differs |= lanes[lane] ^ lanes[0];
    }
    return differs == 0;
}

/* An operand that all lanes must agree on. */
static bool read_uniform(warp *w, const instruction *i, uint32_t operand, const char *what,
                         uint64_t *out)
{
    const uint64_t *lanes = machine_r64(w, operand);

    if (taint_refuse(w, i, operand, MACHINE_ALL, what)) {
        return false;
    }
    for (uint32_t lane = 1; !is_uniform(lanes) && lane < MACHINE_LANES; lane++) {
        if (lanes[lane] != lanes[0]) {
            machine_fault(w, i, lane, 0, FAULT_PRECONDITION,
                          "%s is %016llx in lane %u and %016llx in lane 0", what,
                          (unsigned long long)lanes[lane], lane, (unsigned long long)lanes[0]);
            return false;
        }
    }
    *out = lanes[0];
    return true;
}

static bool read_scale(warp *w, const instruction *i, uint32_t operand, bool *out)
{
    uint32_t lanes = *machine_r32(w, operand);

    if (taint_refuse(w, i, operand, MACHINE_ALL, "scale-d")) {
        return false;
    }
    if (lanes != 0 && lanes != MACHINE_ALL) {
        machine_fault(w, i, machine_lowest(~lanes), 0, FAULT_PRECONDITION,
                      "scale-d is true in lanes %08x and false in the others", lanes);
        return false;
    }
    *out = lanes != 0;
    return true;
}

static bool refuse_registers(warp *w, const uint32_t *operands, uint32_t len, const char *what,
                             const instruction *i)
{
    uint32_t poison = 0;

    for (uint32_t n = 0; w->tainted && n < len; n++) {
        poison |= *machine_poison(w, operands[n]);
    }
    for (uint32_t n = 0; poison != 0 && n < len; n++) {
        if (taint_refuse(w, i, operands[n], MACHINE_ALL, what)) {
            return true;
        }
    }
    return false;
}

/* The descriptor of A, or its four registers. */
static const uint32_t *a_operand(const instruction *i)
{
    return i->o + i->results + (wgmma_has(i, WGMMA_OVERWRITES) ? 0 : i->results);
}

/* The warp's place and its operands. */
static bool open_op(warp *w, const instruction *i, uint32_t mask, wgmma_op *op)
{
    const uint32_t *last = i->o + i->results + i->sources - 1, *a = a_operand(i);
    uint32_t registers = wgmma_has(i, WGMMA_REGISTERS_A) ? 4 : 1,
             first = w->index / WGMMA_GROUP * WGMMA_GROUP;

    if (mask != MACHINE_ALL) {
        machine_fault(w, i, machine_lowest(~mask), 0, FAULT_BARRIER_DIVERGENCE,
                      "wgmma needs all 32 lanes; here are %08x", mask);
        return false;
    }
    if (w->cta->warps_len < first + WGMMA_GROUP) {
        machine_fault(w, i, 0, 0, FAULT_PRECONDITION,
                      "wgmma needs a warpgroup of 4 warps; the CTA's %u end in this one",
                      w->cta->warps_len);
        return false;
    }
    *op = (wgmma_op){.i = i};
    return read_scale(w, i, *last, &op->accumulates) &&
           read_uniform(w, i, last[-1], "the descriptor of B", &op->b_descriptor) &&
           (registers == 4 || read_uniform(w, i, *a, "the descriptor of A", &op->a_descriptor)) &&
           !(registers == 4 && refuse_registers(w, a, 4, "a register of A", i)) &&
           !(op->accumulates && refuse_registers(w, i->o, i->results, "an accumulator", i));
}

static void count_read(warp *w, const wgmma_read *read)
{
    w->run->counters.shared_requests++;
    w->run->counters.shared_wavefronts += read->wavefronts;
}

/* Sixteen rows of A to `raw`, from registers or from shared memory. *changed: they are not what lay
 * there. */
static bool load_a(warp *w, const wgmma_op *op, product *p, uint32_t raw[4][MACHINE_LANES],
                   bool *changed)
{
    const instruction *i = p->i;
    uint32_t first = WGMMA_ROW_BLOCKS * rank_of(w);
    wgmma_read read = {.shadow = UINT8_MAX, .counts = true};

    *changed = false;
    for (uint32_t n = 0; wgmma_has(i, WGMMA_REGISTERS_A) && n < 4; n++) {
        const uint32_t *a = machine_r32(w, a_operand(i)[n]);
        *changed = *changed || memcmp(raw[n], a, sizeof raw[n]) != 0;
        memcpy(raw[n], a, sizeof raw[n]);
    }
    if (wgmma_has(i, WGMMA_REGISTERS_A)) {
        return true;
    }
    if (!wgmma_matrix_open(w, i, op->a_descriptor, wgmma_has(i, WGMMA_TRANSPOSED_A), 'A', first,
                           WGMMA_ROW_BLOCKS, &p->a_matrix)) {
        return false;
    }
    for (uint32_t n = 0; n < WGMMA_ROW_BLOCKS; n++) {
        *changed |= wgmma_matrix_block(w->cta, &p->a_matrix, first + n, raw[n], raw[2 + n], &read);
    }
    count_read(w, &read);
    return !wgmma_matrix_refuse(w, i, &p->a_matrix, 'A', first, WGMMA_ROW_BLOCKS, &read);
}

static void negate(uint32_t a[4][MACHINE_LANES], tensor_type type)
{
    static const uint32_t signs[] = {
        [TENSOR_E4M3] = 0x80808080, [TENSOR_E5M2] = 0x80808080, [TENSOR_BF16] = 0x80008000,
        [TENSOR_F16] = 0x80008000,  [TENSOR_TF32] = 0x80000000,
    };
    for (uint32_t n = 0; n < 4 * MACHINE_LANES; n++) {
        a[n / MACHINE_LANES][n % MACHINE_LANES] ^= signs[type];
    }
}

/* The rows are taken apart once for all columns, and not again for the next product that has them.
 */
static bool open_rows(warp *w, const wgmma_op *op, product *p, tensor_rows *r)
{
    tensor_type type = (tensor_type)(p->i->kind & 15);
    bool negated = wgmma_has(p->i, WGMMA_NEGATED), changed = true;

    if (!load_a(w, op, p, r->raw, &changed)) {
        r->kept = false;
        return false;
    }
    if (negated) {
        negate(r->raw, type);
    }
    if (changed || negated || !r->kept || r->type != type) {
        r->type = type;
        tensor_open_rows(r);
    }
    r->kept = !negated; /* what lies there is compared with A as it is */
    return true;
}

/* Where a B that has this descriptor was taken apart last, or the oldest such place. The warps of a
 * group find it in what their first one keeps. */
static tensor_columns *find_kept(warp *w, uint64_t descriptor)
{
    wgmma_pending *leader = wgmma_open(w - rank_of(w));
    wgmma_kept *k = leader != NULL ? &leader->kept : NULL;
    size_t bytes = WGMMA_KEPT * sizeof *k->columns;

    if (k != NULL && k->columns == NULL) {
        bool room = machine_take(w->run, bytes);
        k->columns = room ? aligned_alloc(_Alignof(tensor_columns), bytes) : NULL;
        if (k->columns != NULL) {
            memset(k->columns, 0, bytes);
        }
    }
    if (k == NULL || k->columns == NULL) {
        machine_out_of_memory(w->run);
        return NULL;
    }
    for (uint32_t n = 0; n < WGMMA_KEPT; n++) {
        if (k->descriptors[n] == descriptor) {
            return k->columns[n];
        }
    }
    k->next = (k->next + 1) % WGMMA_KEPT;
    k->descriptors[k->next] = descriptor;
    return k->columns[k->next];
}

/* Columns of B, taken apart when they are not what lies there already. */
static void open_columns(const warp *w, product *p, uint32_t block)
{
    tensor_columns *c = &p->columns[block];
    tensor_type type = (tensor_type)(p->i->kind >> 4);

    if (wgmma_matrix_block(w->cta, &p->b_matrix, block, c->raw[0], c->raw[1], &p->read) ||
        !c->kept || c->type != type) {
        c->type = type;
        c->kept = true;
        tensor_open_columns(c);
    }
}

/* c and d as fp32, of an f16 result: registers 2j and 2j + 1 hold two columns each. */
static void run_half(warp *w, const uint32_t *registers, const product *p, tensor_group_call *call)
{
    uint32_t wide[4][MACHINE_LANES];
    uint32_t *const d[4] = {wide[0], wide[1], wide[2], wide[3]};

    for (uint32_t n = 0; n < 4 * MACHINE_LANES; n++) {
        uint32_t lane = n % MACHINE_LANES, of = n / MACHINE_LANES;
        float c = p->accumulates
                      ? tensor_half_value(machine_r32(w, registers[of / 2])[lane] >> (of % 2 * 16) &
                                          0xffff)
                      : 0.0f;
        memcpy(&wide[of][lane], &c, sizeof c);
    }
    for (uint32_t n = 0; n < 4; n++) {
        call->c[n] = wide[n];
    }
    tensor_group_run(d, call);
    for (uint32_t n = 0; n < 2 * MACHINE_LANES; n++) {
        uint32_t lane = n % MACHINE_LANES, of = n / MACHINE_LANES;
        float low, high;
        memcpy(&low, &wide[2 * of][lane], sizeof low);
        memcpy(&high, &wide[2 * of + 1][lane], sizeof high);
        machine_r32(w, registers[of])[lane] = tensor_half_code(high) << 16 | tensor_half_code(low);
    }
}

/* `blocks` of them from `block` on, whose columns lie side by side. */
static void run_blocks(warp *w, product *p, uint32_t block, uint32_t blocks)
{
    static const uint32_t zeros[MACHINE_LANES];
    const instruction *i = p->i;
    uint32_t *d[8];

    p->call.columns = p->columns + block;
    p->call.blocks = blocks;
    if (i->element_bytes == WGMMA_F16) {
        run_half(w, p->registers + 2 * block, p, &p->call);
        return;
    }
    for (uint32_t n = 0; n < 4 * blocks; n++) {
        d[n] = machine_r32(w, p->registers[4 * block + n]);
        p->call.c[n] = p->accumulates ? d[n] : zeros;
    }
    tensor_group_run(d, &p->call);
}

static bool run_product(warp *w, const wgmma_op *op, product *p)
{
    const instruction *i = op->i;
    tensor_type type = (tensor_type)(i->kind & 15);
    hone_emu_arithmetic mode = w->run->launch->arithmetic;
    tensor_rows *rows = &w->wgmma->kept.rows;

    p->columns = find_kept(w, op->b_descriptor);
    if (p->columns == NULL || !open_rows(w, op, p, rows) ||
        !wgmma_matrix_open(w, i, op->b_descriptor, wgmma_has(i, WGMMA_TRANSPOSED_B), 'B', 0,
                           i->elements, &p->b_matrix)) {
        return false;
    }
    p->call =
        (tensor_group_call){.rows = rows,
                            .unit = tensor_unit_wgmma(type, i->element_bytes == WGMMA_F16, mode),
                            .mode = mode,
                            .saturate = wgmma_has(i, WGMMA_SATURATED)};
    uint32_t together = mode == HONE_EMU_FAST && i->element_bytes != WGMMA_F16 ? 2 : 1;
    for (uint32_t block = 0, blocks = 0; block < i->elements; block += blocks) {
        blocks = block + together <= i->elements ? together : 1;
        for (uint32_t n = 0; n < blocks; n++) {
            open_columns(w, p, block + n);
        }
        run_blocks(w, p, block, blocks);
    }
    if (p->read.counts) {
        count_read(w, &p->read);
    }
    return !wgmma_matrix_refuse(w, i, &p->b_matrix, 'B', 0, i->elements, &p->read);
}

static void count_product(warp *w, const instruction *i)
{
    static const struct {
        hone_emu_mma counter;
        uint32_t depth;
    } kinds[] = {
        [TENSOR_E4M3] = {HONE_EMU_MMA_FP8, 32},  [TENSOR_E5M2] = {HONE_EMU_MMA_FP8, 32},
        [TENSOR_BF16] = {HONE_EMU_MMA_BF16, 16}, [TENSOR_F16] = {HONE_EMU_MMA_F16, 16},
        [TENSOR_S8] = {HONE_EMU_MMA_S8, 32},     [TENSOR_U8] = {HONE_EMU_MMA_S8, 32},
        [TENSOR_TF32] = {HONE_EMU_MMA_TF32, 8},
    };
    uint32_t type = i->kind & 15;
    uint64_t macs = UINT64_C(16) * 8 * i->elements * kinds[type].depth;

    w->run->counters.tensor_macs[kinds[type].counter] += macs;
    w->run->counters.warpgroup_macs[kinds[type].counter] += macs;
}

bool wgmma_perform(warp *w, const wgmma_op *op)
{
    product p = {.i = op->i,
                 .registers = op->i->o,
                 .accumulates = op->accumulates,
                 /* the four warps' units take B in at once */
                 .read = {.shadow = UINT8_MAX, .counts = rank_of(w) == 0}};

    return run_product(w, op, &p);
}

/* The warps of a group issue the same products in the same order. A warp that is far behind the
 * first is not compared. */
static bool follow_group(warp *w, const wgmma_op *op)
{
    wgmma_pending *own = wgmma_open(w), *leader = wgmma_open(w - rank_of(w));

    if (own == NULL || leader == NULL) {
        return false;
    }
    uint64_t number = ++own->issued;
    wgmma_step *step = &leader->trail[number % WGMMA_TRAIL];
    if (step->number < number) {
        *step = (wgmma_step){number, op->a_descriptor, op->b_descriptor, w->index, op->i->line};
    }
    if (step->number != number ||
        (step->line == op->i->line && step->a_descriptor == op->a_descriptor &&
         step->b_descriptor == op->b_descriptor)) {
        return true;
    }
    machine_fault(w, op->i, 0, 0, FAULT_PRECONDITION,
                  "wgmma %llu of warp %u is not that of warp %u, of the same warpgroup: line %d, A "
                  "%016llx, B %016llx there",
                  (unsigned long long)number, w->index, step->warp, step->line,
                  (unsigned long long)step->a_descriptor, (unsigned long long)step->b_descriptor);
    return false;
}

void exec_wgmma(warp *w, const instruction *i, uint32_t mask)
{
    wgmma_op op;

    if (!open_op(w, i, mask, &op)) {
        return;
    }
    if (!follow_group(w, &op) || !wgmma_reads_add(w, &op)) {
        race_task_free(op.task);
        return;
    }
    wgmma_submit(w, &op);
    for (uint32_t n = 0; w->tainted && n < i->results; n++) {
        taint_set(w, i->o[n], 0, MACHINE_ALL);
    }
    count_product(w, i);
}
