/* special.c - special registers: the names, and what each holds for a warp. */
#include "emulator/machine/machine.h"

typedef enum special_which {
    SPECIAL_TID, /* x, y, z follow one another */
    SPECIAL_NTID = 3,
    SPECIAL_CTAID = 6,
    SPECIAL_NCTAID = 9,
    SPECIAL_CLUSTER_CTAID = 12,
    SPECIAL_CLUSTER_NCTAID = 15,
    SPECIAL_CLUSTERID = 18,
    SPECIAL_NCLUSTERID = 21,
    SPECIAL_LANEID = 24,
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
    SPECIAL_CLOCK_HI,
    SPECIAL_CLOCK64,
    SPECIAL_GLOBALTIMER,
    SPECIAL_GLOBALTIMER_HI,
    SPECIAL_DYNAMIC_SHARED,
    SPECIAL_TOTAL_SHARED,
    SPECIAL_ALL_SHARED,
    SPECIAL_CLUSTER_RANK,
    SPECIAL_CLUSTER_SIZE,
    SPECIAL_EXPLICIT_CLUSTER,
} special_which;

enum {
    RESERVED_SHARED =
        1024, /* shared memory that the system keeps of each CTA, on every arch here */
};

#define ROWS_XYZ(name, which)                                                                      \
    {name ".x", which, 4}, {name ".y", (which) + 1, 4},                                            \
    {                                                                                              \
        name ".z", (which) + 2, 4                                                                  \
    }

static const struct {
    const char *name;
    special_which which;
    uint8_t width;
} specials[] = {
    ROWS_XYZ("%tid", SPECIAL_TID),
    ROWS_XYZ("%ntid", SPECIAL_NTID),
    ROWS_XYZ("%ctaid", SPECIAL_CTAID),
    ROWS_XYZ("%nctaid", SPECIAL_NCTAID),
    ROWS_XYZ("%cluster_ctaid", SPECIAL_CLUSTER_CTAID),
    ROWS_XYZ("%cluster_nctaid", SPECIAL_CLUSTER_NCTAID),
    ROWS_XYZ("%clusterid", SPECIAL_CLUSTERID),
    ROWS_XYZ("%nclusterid", SPECIAL_NCLUSTERID),
    {"%cluster_ctarank", SPECIAL_CLUSTER_RANK, 4},
    {"%cluster_nctarank", SPECIAL_CLUSTER_SIZE, 4},
    {"%is_explicit_cluster", SPECIAL_EXPLICIT_CLUSTER, 0},
    {"%laneid", SPECIAL_LANEID, 4},
    {"%warpid", SPECIAL_WARPID, 4},
    {"%nwarpid", SPECIAL_NWARPID, 4},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ, 4},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT, 4},
    {"%lanemask_le", SPECIAL_LANEMASK_LE, 4},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT, 4},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE, 4},
    {"%smid", SPECIAL_SMID, 4},
    {"%nsmid", SPECIAL_NSMID, 4},
    {"%gridid", SPECIAL_GRIDID, 8},
    {"%clock", SPECIAL_CLOCK, 4},
    {"%clock_hi", SPECIAL_CLOCK_HI, 4},
    {"%clock64", SPECIAL_CLOCK64, 8},
    {"%globaltimer", SPECIAL_GLOBALTIMER, 8},
    {"%globaltimer_lo", SPECIAL_CLOCK, 4},
    {"%globaltimer_hi", SPECIAL_GLOBALTIMER_HI, 4},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED, 4},
    {"%total_smem_size", SPECIAL_TOTAL_SHARED, 4},
    {"%aggr_smem_size", SPECIAL_ALL_SHARED, 4},
};

int special_find(ptx_text name, uint8_t *width)
{
    for (size_t i = 0; i < ARRAY_LEN(specials); i++) {
        if (ptx_text_is(name, specials[i].name)) {
            *width = specials[i].width;
            return (int)specials[i].which;
        }
    }
    return -1;
}

/* Those of three dimensions. */
static uint32_t dimension_value(const warp *w, uint32_t which)
{
    const machine_launch *l = w->run->launch;
    const cluster *c = w->cta->cluster;
    uint32_t d = which % 3, rank = w->cta->rank;
    const uint32_t inside[3] = {rank % c->dims[0], rank / c->dims[0] % c->dims[1],
                                rank / c->dims[0] / c->dims[1]};

    switch (which - d) {
    case SPECIAL_NTID:
        return l->block[d];
    case SPECIAL_CTAID:
        return w->cta->index[d];
    case SPECIAL_NCTAID:
        return l->grid[d];
    case SPECIAL_CLUSTER_CTAID:
        return inside[d];
    case SPECIAL_CLUSTER_NCTAID:
        return c->dims[d];
    case SPECIAL_CLUSTERID:
        return c->index[d];
    default:
        return l->grid[d] / c->dims[d];
    }
}

/* Clocks hold what the cluster had executed when the warp got its turn: they only must not go
 * backwards. */
static uint64_t uniform_value(const warp *w, uint32_t which)
{
    const machine_launch *l = w->run->launch;

    if (which >= SPECIAL_NTID && which < SPECIAL_LANEID) {
        return dimension_value(w, which);
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
        return w->cta->cluster->ran;
    case SPECIAL_CLOCK_HI:
    case SPECIAL_GLOBALTIMER_HI:
        return w->cta->cluster->ran >> 32;
    case SPECIAL_DYNAMIC_SHARED:
        return l->dynamic_shared_bytes;
    case SPECIAL_TOTAL_SHARED:
        return w->cta->shared_bytes;
    case SPECIAL_ALL_SHARED:
        return w->cta->shared_bytes + RESERVED_SHARED;
    case SPECIAL_CLUSTER_RANK:
        return w->cta->rank;
    case SPECIAL_CLUSTER_SIZE:
        return w->cta->cluster->ctas_len;
    case SPECIAL_EXPLICIT_CLUSTER:
        return l->cluster[0] != 0 ? MACHINE_ALL : 0;
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

    if (s->which == SPECIAL_EXPLICIT_CLUSTER) {
        machine_set_predicate(w, s->offset, (uint32_t)uniform_value(w, s->which), MACHINE_ALL);
        return;
    }
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
        if (which >= SPECIAL_CLOCK && which <= SPECIAL_GLOBALTIMER_HI) {
            fill(w, &k->specials[s]);
        }
    }
}
