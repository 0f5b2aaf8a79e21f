/* special.c - special registers: the names, and what each holds for a warp. */
#include "emulator/machine/machine.h"

typedef enum special_which {
    SPECIAL_TID, /* x, y, z follow one another */
    SPECIAL_NTID = 3,
    SPECIAL_CTAID = 6,
    SPECIAL_NCTAID = 9,
    SPECIAL_LANEID = 12,
    SPECIAL_WARPID,
    SPECIAL_NWARPID,
    SPECIAL_LANEMASK_EQ,
    SPECIAL_LANEMASK_LT,
    SPECIAL_LANEMASK_LE,
    SPECIAL_LANEMASK_GT,
    SPECIAL_LANEMASK_GE,
    SPECIAL_SMID,
    SPECIAL_NSMID,
    SPECIAL_GRIDID,
    SPECIAL_CLOCK,
    SPECIAL_CLOCK64,
    SPECIAL_GLOBALTIMER,
    SPECIAL_DYNAMIC_SHARED,
    SPECIAL_TOTAL_SHARED,
    SPECIAL_ZERO,
    SPECIAL_ONE,
} special_which;

static const struct {
    const char *name;
    special_which which;
    bool wide;
} specials[] = {
    {"%tid.x", SPECIAL_TID, false},
    {"%tid.y", SPECIAL_TID + 1, false},
    {"%tid.z", SPECIAL_TID + 2, false},
    {"%ntid.x", SPECIAL_NTID, false},
    {"%ntid.y", SPECIAL_NTID + 1, false},
    {"%ntid.z", SPECIAL_NTID + 2, false},
    {"%ctaid.x", SPECIAL_CTAID, false},
    {"%ctaid.y", SPECIAL_CTAID + 1, false},
    {"%ctaid.z", SPECIAL_CTAID + 2, false},
    {"%nctaid.x", SPECIAL_NCTAID, false},
    {"%nctaid.y", SPECIAL_NCTAID + 1, false},
    {"%nctaid.z", SPECIAL_NCTAID + 2, false},
    {"%laneid", SPECIAL_LANEID, false},
    {"%warpid", SPECIAL_WARPID, false},
    {"%nwarpid", SPECIAL_NWARPID, false},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ, false},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT, false},
    {"%lanemask_le", SPECIAL_LANEMASK_LE, false},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT, false},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE, false},
    {"%smid", SPECIAL_SMID, false},
    {"%nsmid", SPECIAL_NSMID, false},
    {"%gridid", SPECIAL_GRIDID, true},
    {"%clock", SPECIAL_CLOCK, false},
    {"%clock_hi", SPECIAL_ZERO, false},
    {"%clock64", SPECIAL_CLOCK64, true},
    {"%globaltimer", SPECIAL_GLOBALTIMER, true},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED, false},
    {"%total_smem_size", SPECIAL_TOTAL_SHARED, false},
    {"%cluster_ctarank", SPECIAL_ZERO, false},
    {"%cluster_ctaid.x", SPECIAL_ZERO, false},
    {"%cluster_nctaid.x", SPECIAL_ONE, false},
    {"%cluster_nctarank", SPECIAL_ONE, false},
};

int special_find(ptx_text name, bool *wide)
{
    for (size_t i = 0; i < ARRAY_LEN(specials); i++) {
        if (ptx_text_is(name, specials[i].name)) {
            *wide = specials[i].wide;
            return (int)specials[i].which;
        }
    }
    return -1;
}

/* Clocks hold what the launch had executed when the warp got its turn: they only must not go
 * backwards. */
static uint64_t uniform_value(const warp *w, uint32_t which)
{
    const machine_launch *l = w->run->launch;

    if (which >= SPECIAL_NTID && which < SPECIAL_CTAID) {
        return l->block[which - SPECIAL_NTID];
    }
    if (which >= SPECIAL_CTAID && which < SPECIAL_NCTAID) {
        return w->cta->index[which - SPECIAL_CTAID];
    }
    if (which >= SPECIAL_NCTAID && which < SPECIAL_LANEID) {
        return l->grid[which - SPECIAL_NCTAID];
    }
    switch (which) {
    case SPECIAL_WARPID:
        return w->index;
    case SPECIAL_NWARPID:
        return w->cta->warps_len;
    case SPECIAL_SMID:
        return w->cta->linear % (l->sm_count > 0 ? (uint64_t)l->sm_count : 1);
    case SPECIAL_NSMID:
        return (uint64_t)l->sm_count;
    case SPECIAL_CLOCK:
    case SPECIAL_CLOCK64:
    case SPECIAL_GLOBALTIMER:
        return w->run->counters.warp_instructions;
    case SPECIAL_DYNAMIC_SHARED:
        return l->dynamic_shared_bytes;
    case SPECIAL_TOTAL_SHARED:
        return w->cta->shared_bytes;
    case SPECIAL_ONE:
        return 1;
    default:
        return 0;
    }
}

static uint32_t lane_value(const warp *w, uint32_t which, uint32_t lane)
{
    const uint32_t *block = w->run->launch->block;
    uint32_t thread = w->index * MACHINE_LANES + lane, bit = UINT32_C(1) << lane;

    switch (which) {
    case SPECIAL_TID:
        return thread % block[0];
    case SPECIAL_TID + 1:
        return thread / block[0] % block[1];
    case SPECIAL_TID + 2:
        return thread / block[0] / block[1];
    case SPECIAL_LANEMASK_EQ:
        return bit;
    case SPECIAL_LANEMASK_LT:
        return bit - 1;
    case SPECIAL_LANEMASK_LE:
        return bit | (bit - 1);
    case SPECIAL_LANEMASK_GT:
        return ~(bit | (bit - 1));
    case SPECIAL_LANEMASK_GE:
        return ~(bit - 1);
    default:
        return lane;
    }
}

static bool by_lane(uint32_t which)
{
    return which < SPECIAL_NTID || which == SPECIAL_LANEID ||
           (which >= SPECIAL_LANEMASK_EQ && which <= SPECIAL_LANEMASK_GE);
}

static void fill(warp *w, const special_slot *s)
{
    bool wide = s->which == SPECIAL_GRIDID || s->which == SPECIAL_CLOCK64 ||
                s->which == SPECIAL_GLOBALTIMER;
    uint64_t uniform = by_lane(s->which) ? 0 : uniform_value(w, s->which);

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        if (wide) {
            machine_r64(w, s->offset)[lane] = uniform;
        } else {
            machine_r32(w, s->offset)[lane] =
                by_lane(s->which) ? lane_value(w, s->which, lane) : (uint32_t)uniform;
        }
    }
}

void special_fill_warp(warp *w)
{
    const ptx_kernel *k = w->run->kernel;

    for (uint32_t s = 0; s < k->specials_len; s++) {
        fill(w, &k->specials[s]);
    }
}

void special_fill_clocks(warp *w)
{
    const ptx_kernel *k = w->run->kernel;

    for (uint32_t s = 0; s < k->specials_len; s++) {
        uint32_t which = k->specials[s].which;
        if (which >= SPECIAL_CLOCK && which <= SPECIAL_GLOBALTIMER) {
            fill(w, &k->specials[s]);
        }
    }
}
