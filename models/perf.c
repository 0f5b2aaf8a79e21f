/* perf.c - the time of a launch from its counters: one term for each pipe, none of them measured
 * here.
 *
 * Work is spread evenly over the pieces that CTAs make, and those over the SMs, so that the busiest
 * SM sets the time of what each SM has for itself, and the whole chip that of L2 and DRAM. */
#include "models/perf.h"

#include "core/integer.h"

#include <math.h>

/* What a well-tuned kernel reaches of the tensor rate: cuBLAS 132 to 140 of H20's 148 TFLOP/s, with
 * the barriers' loss below included. */
#define TENSOR_SHARE 0.97

/* An SM's port to L2 takes 64 bytes a clock; streams sustain most of it. */
#define PORT_BYTES_PER_CLK 56.0

/* A load that hits L2 takes this share of one that goes to DRAM. */
#define L2_LATENCY_SHARE 0.45

/* Without a software pipeline, a thread keeps about two 16-byte loads in flight, unless its manifest
 * says more (`ahead`). */
#define INFLIGHT_BYTES_PER_THREAD 32.0

/* A warp's dependent instructions follow each other after 4 clocks, with one or two independent
 * ones between. */
#define ISSUE_PER_WARP 0.4

/* Barriers and loop ends leave the tensor pipe idle; each further warp of a sub-partition halves
 * that. */
#define TENSOR_IDLE 0.1

/* Of the rereads of what does not fit L2, this share misses: the CTAs of a wave share tiles. */
#define REREAD_MISSES 0.15

/* The exponent of pipes that overlap well: two equal times join to 1.19 of one. */
#define OVERLAP 4.0
/* wgmma and the copy engine run beside the warps: two equal times join to 1.09 of one. */
#define OVERLAP_ASYNC 8.0

/* Clocks from a commit to the end of the wait, beyond the products' own (per32.md counts with 20 to
 * 80), and a warp's clocks for each of its straight-line instructions when it runs alone (its stall
 * counts: 371 for 346). */
#define PRODUCT_LATENCY 40.0
#define CLOCKS_ALONE    1.07
/* Clocks of a warp for each instruction that stores a tile, which depend on shared memory and on
 * barriers, and for a tile's barriers and its first product. DeepGEMM's published rates at short K
 * say 3500 a tile for a kernel that also waits until the tile is in memory. */
#define EPILOGUE_CLOCKS 3.0
#define TILE_CLOCKS     1000.0

/* A pipeline's first loads and the last stores of a CTA, in latencies of DRAM. */
#define FILL_LATENCIES 1.5
/* From a share of a piece in registers to its sum in another CTA: a write, a flag, its look and a
 * read, of L2. */
#define SHARE_LATENCIES 2.0
/* The same where CTAs count arrivals: a write, an arrival and a read. */
#define MEETING_TRIPS 3.0

enum { PERF_PARTITIONS = 4, PERF_REGISTER_UNIT = 256, PERF_SHARED_UNIT = 128 };

/* Where the launch stands on this GPU. */
typedef struct placement {
    double occupancy; /* CTAs that fit an SM */
    double tiles;     /* that the busiest SM makes */
    double busiest;   /* share of all work that it does */
    double resident;  /* CTAs at once on that SM */
    double waves;     /* pieces over all that are made at once; not below 1 */
    double warps;     /* resident on a sub-partition of it */
    double inflight;  /* bytes on their way to it */
    double clk;       /* clocks a nanosecond */
} placement;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* CTAs by registers: they are handed out to warps in units, and to sub-partitions evenly. */
static int64_t fit_registers(const device_facts *f, int64_t warps, int32_t registers)
{
    int64_t per_warp =
        integer_round_up(32 * (int64_t)(registers > 0 ? registers : 1), PERF_REGISTER_UNIT);
    int64_t total = f->regs_per_sm / per_warp / PERF_PARTITIONS * PERF_PARTITIONS;

    return total / warps;
}

int perf_occupancy(const gpu *g, const perf_work *work)
{
    const device_facts *f = &g->facts;
    int64_t warps = integer_round_up(work->threads, 32) / 32;
    int64_t shared =
        integer_round_up((int64_t)work->shared_bytes + f->smem_reserved, PERF_SHARED_UNIT);
    int64_t fit = f->blocks_per_sm;

    if (warps == 0 || work->shared_bytes > f->smem_per_block) {
        return 0;
    }
    fit = least(fit, f->threads_per_sm / 32 / warps);
    fit = least(fit, fit_registers(f, warps, work->registers));
    if (shared > 0) {
        fit = least(fit, f->smem_per_sm / shared);
    }
    return (int)fit;
}

/* CTAs that part pieces: each makes one more than its share, of which it does a part. */
static double share_of(const perf_work *work)
{
    return work->share > 1 ? work->share : 1;
}

static bool multiplies_in_groups(const perf_work *work)
{
    return work->groups > 0 && work->units > 0;
}

/* Pieces that the busiest SM makes: CTAs take every `ctas`-th piece, SMs every `sms`-th CTA. */
static double deepest_of(double pieces, double ctas, double sms)
{
    double held = ceil(ctas / sms), each = floor(pieces / ctas), rest = pieces - each * ctas;

    return held * each + fmin(held, ceil(rest / sms));
}

static placement place(const gpu *g, const perf_work *work, int occupancy)
{
    double ctas = (double)work->ctas, pieces = work->tiles > 0 ? work->tiles : ctas;
    double cluster = work->cluster > 1 ? work->cluster : 1;
    /* Whole clusters only; those that one GPC's odd SM cannot hold are not known. */
    double sms = fmax(1, floor(g->facts.sm_count / cluster) * cluster);
    double share = share_of(work), deepest = deepest_of(pieces * share, ctas, sms) / share;
    double resident = fmin(ceil(ctas / sms), occupancy);
    double stages = work->stages > 1 ? work->stages : 1;
    double buffered = work->shared_bytes * (stages - 1) / stages;
    double ahead = work->ahead > 0 ? work->ahead : INFLIGHT_BYTES_PER_THREAD;

    return (placement){
        .occupancy = occupancy,
        .tiles = deepest + (share > 1),
        .busiest = deepest / pieces,
        .resident = resident,
        .waves = fmax(1, pieces / (sms * occupancy)),
        .warps = resident * ceil(work->threads / 32.0) / PERF_PARTITIONS,
        .inflight = resident * fmax(buffered, ahead * work->threads),
        .clk = g->facts.clock_mhz / 1e3,
    };
}

/* HONE_UNSUPPORTED for a kind of product that the GPU lacks. */
static hone_status check_units(const gpu *g, const perf_work *work, hone_error *error)
{
    for (size_t i = 0; i < GPU_MMA_KINDS; i++) {
        if ((work->tensor_macs[i] > 0 && g->mma_sync_per_clk_sm[i] <= 0) ||
            (work->warpgroup_macs[i] > 0 && g->flop_per_clk_sm[i] <= 0)) {
            return status_set(error, HONE_UNSUPPORTED, g->slug, 0, "%s has no %s mma",
                              g->facts.name, gpu_mma_name((gpu_mma)i));
        }
    }
    return HONE_OK;
}

/* What DRAM gives: everything once, and again what a later wave wants and L2 could not keep. */
static double memory_bytes(const gpu *g, const perf_work *work, const placement *p)
{
    double footprint = work->dram_bytes, rereads = fmax(0, work->l2_bytes - footprint);
    double outside = footprint > 0 ? fmax(0, 1 - (double)g->facts.l2_bytes / footprint) : 0;

    if (work->wave_bytes > 0) {
        return footprint + outside * fmax(0, p->waves * work->wave_bytes - footprint);
    }
    return footprint + REREAD_MISSES * outside * rereads;
}

/* Trips to L2 from a part of a piece in registers to its sum: CTAs that share pieces out wait for a
 * flag, others count arrivals in memory that was cleared. */
static double meeting_trips(const perf_work *work)
{
    return share_of(work) > 1 ? SHARE_LATENCIES : work->clears ? MEETING_TRIPS : 0;
}

/* Nanoseconds for `bytes` through the busiest SM's port: its width, or one latency for each time
 * that what it keeps in flight has come. The first of these runs from the first request to the
 * first byte, which FILL_LATENCIES counts: an SM that asks for all of its bytes at once waits no
 * second time. */
static double port_ns(const placement *p, double bytes, double latency_ns)
{
    double own = bytes * p->busiest;

    return fmax(own / (PORT_BYTES_PER_CLK * p->clk), fmax(0, own / p->inflight - 1) * latency_ns);
}

/* Clocks of the tensor pipe for all kinds by one way of multiplying. */
static double clocks_of(const double macs[GPU_MMA_KINDS], const double rates[GPU_MMA_KINDS])
{
    double sum = 0;

    for (size_t i = 0; i < GPU_MMA_KINDS; i++) {
        sum += macs[i] > 0 ? 2 * macs[i] / rates[i] : 0;
    }
    return sum;
}

/* Clocks that one warpgroup takes for a unit while the SM's others take turns with it: the
 * products, the wait, the promotion; with two sets the promotion of one runs beside the products of
 * the other, and where both are queued two units take one round and one promotion, if not the time
 * of their products. A group's four warps are on the four sub-partitions, so that instructions
 * count there. Others stretch a promotion by their share of the issue slots, which is where the
 * quadratic comes from.
 *
 * Against the cycle-by-cycle simulation in per32.md 3 (m64n128k32, one set, two groups, latencies
 * 20, 40, 80): 210, 229 and 272 clocks there, 216, 233 and 268 here. */
static double unit_clocks(const perf_work *work, double products, double instructions,
                          double groups)
{
    double alone = CLOCKS_ALONE * instructions, round = products + PRODUCT_LATENCY;

    if (work->sets >= 2 && work->queue >= 2) {
        return fmax(products, (round + alone) / 2);
    }
    if (work->sets >= 2) {
        return fmax(round, alone);
    }
    round += alone;
    return (round + sqrt(round * round + 4 * (groups - 1) * instructions * alone)) / 2;
}

/* Sets `loop` and `stores`: nanoseconds of the busiest SM's groups for their units, and after them
 * for their tiles, as far as no other CTA of the SM works meanwhile. */
static void chain_ns(const gpu *g, const perf_work *work, const placement *p, double *loop,
                     double *stores)
{
    double groups = work->groups * p->resident, share = p->busiest / groups / p->clk;
    double promoting = fmax(0, work->warp_instructions - work->epilogue_warp);
    double products = clocks_of(work->warpgroup_macs, g->flop_per_clk_sm) / work->units;
    double instructions = promoting / g->issue_slots / work->units;

    *loop = work->units * share * unit_clocks(work, products, instructions, groups);
    *stores = work->epilogue_warp / g->issue_slots * share * EPILOGUE_CLOCKS +
              p->tiles * TILE_CLOCKS / p->resident / p->clk;
}

static void fill_terms(const gpu *g, const perf_work *work, const placement *p,
                       double term[PERF_BOUNDS])
{
    bool groups = multiplies_in_groups(work);
    double share = groups ? 1 : fmin(1, p->warps);
    double issue = groups ? 1 : fmin(1, ISSUE_PER_WARP * p->warps);
    double idle = 1 + TENSOR_IDLE / fmax(1, p->warps);
    double busy = p->busiest / p->clk; /* ns of the busiest SM for each clock of all work */
    double bytes = memory_bytes(g, work, p);
    double chip_l2 = g->l2_bytes_per_clk * p->clk;
    double chip_dram = PERF_DRAM_SHARE * (double)g->facts.mem_bytes_per_s / 1e9;
    double rounds = ceil((double)work->ctas / (g->facts.sm_count * p->occupancy));

    term[PERF_TENSOR] = (clocks_of(work->tensor_macs, g->mma_sync_per_clk_sm) / share * idle +
                         clocks_of(work->warpgroup_macs, g->flop_per_clk_sm) / g->tensor_sustained *
                             (groups ? 1 : idle / share)) *
                        busy / TENSOR_SHARE;
    term[PERF_FP32] =
        fmax(32 * work->fp32_warp / g->fp32_lanes, 32 * work->sfu_warp / g->sfu_lanes) * busy /
        issue;
    term[PERF_ISSUE] = work->warp_instructions / g->issue_slots * busy / issue;
    term[PERF_SHARED] = work->shared_wavefronts * 128 / g->shared_bytes_per_clk_sm * busy / share;
    term[PERF_L2] = fmax(work->l2_bytes / chip_l2,
                         port_ns(p, work->l2_bytes, g->dram_latency_ns * L2_LATENCY_SHARE));
    term[PERF_DRAM] = fmax(bytes / chip_dram, port_ns(p, bytes, g->dram_latency_ns));
    /* Later rounds fill while the other CTAs of the SM work. */
    term[PERF_LAUNCH] = g->launch_ns * (work->clears ? 2 : 1) +
                        FILL_LATENCIES * g->dram_latency_ns * (1 + (rounds - 1) / p->occupancy) +
                        meeting_trips(work) * g->dram_latency_ns * L2_LATENCY_SHARE;
}

/* The p-norm of times goes from their sum (p = 1), for what happens one after the other, towards
 * the longest of them, for what overlaps. It keeps a trace of the shorter ones, so that of two
 * kernels with one bound the lighter wins. */
static double join(const double *times, size_t len, double p)
{
    double longest = 0, sum = 0;

    for (size_t i = 0; i < len; i++) {
        longest = fmax(longest, times[i]);
    }
    if (longest == 0) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        sum += pow(times[i] / longest, p);
    }
    return longest * pow(sum, 1 / p);
}

/* The pipes of an SM overlap because its warps do, or because wgmma runs beside them. Memory
 * overlaps with them as far as there are buffers: one CTA with one buffer loads, then computes; two
 * buffers nearly hide it. Groups add the chain of each, and the stores after it. */
static double overlap(const gpu *g, const perf_work *work, const placement *p,
                      double term[PERF_BOUNDS])
{
    bool groups = multiplies_in_groups(work);
    double sharpest = groups ? OVERLAP_ASYNC : OVERLAP, loop = 0, stores = 0;
    double buffers = p->occupancy * fmax(1, work->stages);
    const double sm[] = {term[PERF_TENSOR], term[PERF_FP32], term[PERF_ISSUE], term[PERF_SHARED]};
    const double memory[] = {term[PERF_L2], term[PERF_DRAM]};

    if (groups) {
        chain_ns(g, work, p, &loop, &stores);
        term[PERF_CHAIN] = loop + stores;
    }
    const double both[] = {fmax(join(sm, ARRAY_LEN(sm), sharpest), loop) + stores,
                           join(memory, ARRAY_LEN(memory), OVERLAP)};

    return join(both, ARRAY_LEN(both), fmin(sharpest, 2 * buffers - 1));
}

static hone_status check_work(const perf_work *work, hone_error *error)
{
    const double counts[] = {work->fp32_warp,
                             work->sfu_warp,
                             work->warp_instructions,
                             work->shared_wavefronts,
                             work->l2_bytes,
                             work->dram_bytes,
                             work->tiles,
                             work->units,
                             work->epilogue_warp};
    bool sane = work->threads >= 1 && work->threads <= 1024 && work->shared_bytes >= 0;

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        sane = sane && counts[i] >= 0 && isfinite(counts[i]);
    }
    for (size_t i = 0; i < GPU_MMA_KINDS; i++) {
        sane = sane && work->tensor_macs[i] >= 0 && isfinite(work->tensor_macs[i]) &&
               work->warpgroup_macs[i] >= 0 && isfinite(work->warpgroup_macs[i]);
    }
    if (!sane) {
        return status_set(
            error, HONE_BAD_ARGUMENT, NULL, 0,
            "a launch has 1 to 1024 threads a CTA, and no negative or infinite count");
    }
    return HONE_OK;
}

hone_status perf_predict(const gpu *g, const perf_work *work, perf_answer *out, hone_error *error)
{
    hone_status status = HONE_OK;
    perf_answer answer = {.bound = PERF_LAUNCH};
    double busy = 0;
    int occupancy = 0;

    TRY(check_work(work, error));
    TRY(check_units(g, work, error));
    occupancy = perf_occupancy(g, work);
    if (occupancy == 0) {
        return status_set(
            error, HONE_UNSUPPORTED, g->slug, 0,
            "no CTA of %u threads, %d registers and %d bytes of shared memory fits an "
            "SM of %s",
            work->threads, (int)work->registers, (int)work->shared_bytes, g->facts.name);
    }
    answer.occupancy = occupancy;
    answer.term_ns[PERF_LAUNCH] = g->launch_ns;
    if (work->ctas > 0) {
        placement p = place(g, work, occupancy);

        fill_terms(g, work, &p, answer.term_ns);
        busy = overlap(g, work, &p, answer.term_ns);
        answer.waves = (double)work->ctas / ((double)g->facts.sm_count * occupancy);
    }
    for (int i = 0; i < PERF_BOUNDS; i++) {
        answer.bound =
            answer.term_ns[i] > answer.term_ns[answer.bound] ? (perf_bound)i : answer.bound;
    }
    answer.ns = answer.term_ns[PERF_LAUNCH] + busy;
    *out = answer;
done:
    return status;
}

double perf_peak_flops(const gpu *g, gpu_mma kind)
{
    return (unsigned)kind < GPU_MMA_KINDS
               ? g->flop_per_clk_sm[kind] * g->facts.sm_count * g->facts.clock_mhz * 1e6
               : 0;
}

double perf_launch_ns(const gpu *g)
{
    return g->launch_ns + FILL_LATENCIES * g->dram_latency_ns;
}

const char *perf_bound_name(perf_bound bound)
{
    static const char *const names[PERF_BOUNDS] = {"tensor", "fp32", "issue", "shared",
                                                   "l2",     "dram", "chain", "launch"};

    return (unsigned)bound < PERF_BOUNDS ? names[bound] : "?";
}
