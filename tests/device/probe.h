/* probe.h - questions to a device about what no manual says to the last bit, and their inputs.
 *
 * A probe is a kernel that turns words into words. Inputs come from a seed and are the same
 * everywhere, so that an emulated and a real device answer the same question. */
#ifndef HONE_TESTS_DEVICE_PROBE_H
#define HONE_TESTS_DEVICE_PROBE_H

#include "runtime/device.h"
#include "tests/device/golden.h"

typedef struct probe probe;
struct probe {
    const char *name, *file, *kernel;
    uint32_t cases, in_each, out_each; /* words */
    uint32_t block;                    /* threads of a CTA */
    bool thread_each;                  /* a case is a thread, not a CTA */
    bool approximate;                  /* no bits are promised: differences are told, not judged */
    int32_t arch;                      /* that has what is asked about; 0: each that hone knows */
    void (*fill)(const probe *p, uint32_t *in);
    /* Other than one launch over all cases: tensor maps. NULL: the plain way. */
    hone_status (*run)(const probe *p, const device *d, CUfunction f, golden *g, hone_error *error);
};

extern const probe probes[];
extern const size_t probes_len;
const probe *probe_find(const char *name); /* NULL: there is none */

/* Ask the device: compile the probe for its arch, fill its inputs, run it. HONE_UNSUPPORTED where
 * the arch lacks what is asked for. The caller frees *out. */
hone_status probe_ask(const probe *p, const device *d, golden *out, hone_error *error);
bool probe_is_for(const probe *p, const device *d);

/* probe_inputs.c */
void probe_fill_random(const probe *p, uint32_t *in);
void probe_fill_numbers(const probe *p, uint32_t *in); /* fp32: every exponent, edges, specials */
void probe_fill_codes(const probe *p, uint32_t *in);   /* 0, 1, 2, ... */
void probe_fill_e4m3(const probe *p, uint32_t *in);    /* mma.sync: fragments a, b, then fp32 c */
void probe_fill_e5m2(const probe *p, uint32_t *in);
void probe_fill_bf16(const probe *p, uint32_t *in);
void probe_fill_f16(const probe *p, uint32_t *in);
void probe_fill_e2m1(const probe *p, uint32_t *in); /* a, b, e4m3 scales of both, then fp32 c */
/* Scales of the block-scaled mma, rows' and columns' by lane: in half of the cases each row's byte
 * is another power of two and the columns' are one, in the other half the other way round. */
void probe_fill_scales(const probe *p, uint32_t *in);
/* probe_tensor.c: boxes of tensor maps; in: the case's numbers, out: 2048 words of shared memory.
 */
void probe_fill_boxes(const probe *p, uint32_t *in);
void probe_fill_narrow(const probe *p, uint32_t *in); /* rows narrower than the swizzle's span */
hone_status probe_run_boxes(const probe *p, const device *d, CUfunction f, golden *g,
                            hone_error *error);
/* probe_ranks.c: boxes of 1 to 5 dimensions; in: PROBE_RANKS_WORDS numbers, out: 512 words of
 * shared memory. All swizzles; those of larger chunks. */
enum { PROBE_RANKS_WORDS = 19 };
void probe_fill_ranks(const probe *p, uint32_t *in);
void probe_fill_atoms(const probe *p, uint32_t *in);
hone_status probe_run_ranks(const probe *p, const device *d, CUfunction f, golden *g,
                            hone_error *error);
/* probe_conflicts.c: a case is the bytes of a load and a pattern of places; wavefronts of one. */
void probe_fill_conflicts(const probe *p, uint32_t *in);
hone_status probe_run_conflicts(const probe *p, const device *d, CUfunction f, golden *g,
                                hone_error *error);

#endif
