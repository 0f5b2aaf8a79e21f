/* proof.c - one candidate on an emulated device: compiled, launched between red zones, verified. */
#include "tests/templates/proof.h"

#include "bench/verify.h"
#include "runtime/module.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operands on the device, each between two red zones. */
typedef struct arena {
    const device *d;
    size_t len;
    CUdeviceptr base[HONE_MAX_OPERANDS], workspace;
    uint64_t address[HONE_MAX_OPERANDS];
} arena;

static void need(const device *d, CUresult result, const char *call)
{
    hone_error error = {0};

    ck_assert_msg(driver_check(d->driver, result, call, &error) == HONE_OK, "%s", error.message);
}

/* Nobody writes the workspace before the launch: reading what is not there is a fault. */
static void arena_fill(arena *a, const device *d, const plan *p, const inputs *in)
{
    *a = (arena){.d = d, .len = in->len};
    for (size_t i = 0; i < in->len; i++) {
        const uint64_t bytes = in->operand[i].bytes;
        need(d, d->driver->cuMemAlloc(&a->base[i], bytes + 2 * VERIFY_RED_ZONE_BYTES),
             "cuMemAlloc");
        need(d,
             d->driver->cuMemsetD8(a->base[i], VERIFY_RED_ZONE_BYTE,
                                   bytes + 2 * VERIFY_RED_ZONE_BYTES),
             "cuMemsetD8");
        a->address[i] = a->base[i] + VERIFY_RED_ZONE_BYTES;
        need(d, d->driver->cuMemcpyHtoD(a->address[i], in->image[i], bytes), "cuMemcpyHtoD");
    }
    if (p->workspace_bytes > 0) {
        need(d, d->driver->cuMemAlloc(&a->workspace, p->workspace_bytes), "cuMemAlloc");
    }
}

static void arena_free(arena *a)
{
    for (size_t i = 0; i < a->len; i++) {
        a->d->driver->cuMemFree(a->base[i]);
    }
    if (a->workspace != 0) {
        a->d->driver->cuMemFree(a->workspace);
    }
}

/* Images of what the kernel wrote; a damaged red zone is said in *result. */
static void arena_read(const arena *a, inputs *after, verify_result *result)
{
    uint8_t zone[2][VERIFY_RED_ZONE_BYTES];

    for (size_t i = 0; i < a->len; i++) {
        const uint64_t bytes = after->operand[i].bytes;
        need(a->d, a->d->driver->cuMemcpyDtoH(zone[0], a->base[i], sizeof zone[0]), "cuMemcpyDtoH");
        need(a->d, a->d->driver->cuMemcpyDtoH(zone[1], a->address[i] + bytes, sizeof zone[1]),
             "cuMemcpyDtoH");
        if (verify_red_zone(zone[0], sizeof zone[0]) < sizeof zone[0] ||
            verify_red_zone(zone[1], sizeof zone[1]) < sizeof zone[1]) {
            verify_fail(result, "wrote outside of %s", after->operand[i].name);
        }
        if (after->operand[i].access != 1) {
            need(a->d, a->d->driver->cuMemcpyDtoH(after->image[i], a->address[i], bytes),
                 "cuMemcpyDtoH");
        }
    }
}

/* Launch on operands as `before` has them; written ones go to *after. A fault is a verdict; the
 * device then starts afresh. */
static bool launch(const device *d, const plan *p, const compiled *code, const inputs *before,
                   inputs *after, verify_result *result)
{
    hone_error error = {0};
    module *m = NULL;
    arena a;

    ck_assert_msg(device_enter(d, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(module_load(d, p, code, &m, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(inputs_copy_outputs(before, after, &error) == HONE_OK, "%s", error.message);
    arena_fill(&a, d, p, before);
    hone_status status = module_launch(m, p, a.address, a.len, a.workspace, NULL, &error);
    if (status == HONE_OK) {
        status = driver_check(d->driver, d->driver->cuCtxSynchronize(), "cuCtxSynchronize", &error);
    }
    if (status == HONE_OK) {
        arena_read(&a, after, result);
        arena_free(&a);
        module_unload(m);
        return true;
    }
    hone_emu_fault fault = {0};
    d->driver->emu->last_fault(d->ordinal, &fault, NULL);
    module_unload(m);
    result->passed = false;
    snprintf(result->reason, sizeof result->reason, "%.80s: %.140s", error.message, fault.message);
    d->driver->emu->reset(d->ordinal, NULL);
    return false;
}

static void judge(const device *d, const proof_case *c, const plan *p, const inputs *before,
                  const inputs *after, verify_result *result)
{
    hone_error error = {0};
    const uint8_t *written[HONE_MAX_OPERANDS] = {NULL};
    verify_result compared = {.passed = true};

    for (size_t i = 0; i < after->len; i++) {
        written[i] = after->operand[i].access != 1 ? after->image[i] : NULL;
    }
    const verify_request request = {.problem = c->problem,
                                    .before = before,
                                    .after = written,
                                    .tolerance = p->tolerance,
                                    .wide =
                                        verify_unit_is_wide(d->gpu.facts.arch, p->fraction_bits),
                                    .ctas_run = 1,
                                    .ctas_total = 1};
    ck_assert_msg(verify_outputs(&request, &compared, &error) == HONE_OK, "%s", error.message);
    if (!compared.passed) {
        verify_fail(result, "%s", compared.reason);
    }
}

/* The launches of a legal config, compiled. */
static compiled *prepare(const kernels *k, const device *d, const proof_case *c, plan *p)
{
    hone_error error = {0};
    compiled *code = NULL;
    char why[160] = "";
    bool legal = false;

    ck_assert_int_eq(
        manifest_legal(c->m, c->problem, &d->gpu.facts, c->config, &legal, why, &error), HONE_OK);
    ck_assert_msg(legal, "%s", why);
    ck_assert_msg(manifest_plan(c->m, c->problem, &d->gpu.facts, c->config, p, &error) == HONE_OK,
                  "%s", error.message);
    jit_request request = {.source = *c->source, .name = "kernel", .arch = d->gpu.facts.arch};
    for (size_t i = 0; i < p->launches_len; i++) {
        request.entries[request.entries_len++] = p->launches[i].entry;
    }
    ck_assert_msg(jit_compile(k->compiler, &request, &code, &error) == HONE_OK, "%s",
                  error.message);
    return code;
}

bool proof_passes(const kernels *k, const device *d, const proof_case *c, char reason[240])
{
    hone_error error = {0};
    inputs before = {0}, after = {0};
    verify_result result = {.passed = true};
    plan p;
    compiled *code = prepare(k, d, c, &p);

    ck_assert_msg(inputs_make(c->problem, c->kind, 11, &before, &error) == HONE_OK, "%s",
                  error.message);
    if (launch(d, &p, code, &before, &after, &result)) {
        judge(d, c, &p, &before, &after, &result);
    }
    inputs_free_outputs(&after);
    inputs_free(&before);
    compiled_free(code);
    memcpy(reason, result.reason, sizeof result.reason);
    return result.passed;
}

compiled *proof_compile(const kernels *k, const device *d, const proof_case *c)
{
    plan p;

    return prepare(k, d, c, &p);
}

void proof_launch(const device *d, const proof_case *c, const compiled *code, const inputs *before,
                  inputs *after)
{
    verify_result result = {.passed = true};
    hone_error error = {0};
    plan p;

    ck_assert_msg(manifest_plan(c->m, c->problem, &d->gpu.facts, c->config, &p, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(launch(d, &p, code, before, after, &result) && result.passed, "%s",
                  result.reason);
}
