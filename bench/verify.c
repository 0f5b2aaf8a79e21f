/* verify.c - the verdict: one entry for all ops, and the sums of a comparison. */
#include "bench/verify.h"
#include "bench/verify_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void verify_sums_add(verify_sums *s, double got, double expected)
{
    s->dot += got * expected;
    s->got += got * got;
    s->expected += expected * expected;
    s->error += (got - expected) * (got - expected);
}

verify_sums verify_sums_join(const verify_sums *a, const verify_sums *b)
{
    return (verify_sums){.dot = a->dot + b->dot,
                         .got = a->got + b->got,
                         .expected = a->expected + b->expected,
                         .error = a->error + b->error};
}

void verify_sums_finish(const verify_sums *s, verify_result *out)
{
    double norms = sqrt(s->got) * sqrt(s->expected), both = s->got + s->expected;

    out->cosine = norms > 0.0 ? s->dot / norms : (both > 0.0 ? 0.0 : 1.0);
    out->rel_fro =
        s->expected > 0.0 ? sqrt(s->error / s->expected) : (s->got > 0.0 ? (double)INFINITY : 0.0);
    /* 1 - 2 xy / (x^2 + y^2), written so that nearly equal tensors do not cancel */
    out->calc_diff = both > 0.0 ? s->error / both : 0.0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void verify_keep_worst(verify_result *worst, const verify_result *other)
{
    worst->compared = worst->compared > other->compared ? worst->compared : other->compared;
    worst->cosine = -larger(-worst->cosine, -other->cosine);
    worst->rel_fro = larger(worst->rel_fro, other->rel_fro);
    worst->calc_diff = larger(worst->calc_diff, other->calc_diff);
    worst->max_err = larger(worst->max_err, other->max_err);
    worst->max_err_ratio = larger(worst->max_err_ratio, other->max_err_ratio);
}

void verify_fail(verify_result *result, const char *format, ...)
{
    va_list arguments;

    if (result->reason[0] == '\0') {
        va_start(arguments, format);
        vsnprintf(result->reason, sizeof result->reason, format, arguments);
        va_end(arguments);
    }
    result->passed = false;
}

size_t verify_red_zone(const uint8_t *zone, size_t len)
{
    size_t i = 0;

    while (i < len && zone[i] == VERIFY_RED_ZONE_BYTE) {
        i++;
    }
    return i;
}

bool verify_unit_is_wide(int32_t arch, int64_t fraction_bits)
{
    return fraction_bits > 0 ? fraction_bits >= 23 : arch >= 90;
}

hone_status verify_outputs(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    verify_result made = {.passed = true, .cosine = 1.0};

    if (r->ctas_run == 0 || r->ctas_run > r->ctas_total) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "verify: %llu of %llu CTAs ran",
                          (unsigned long long)r->ctas_run, (unsigned long long)r->ctas_total);
    }
    switch (r->problem->op) {
    case HONE_OP_FP8_GEMM:
        status = verify_gemm(r, &made, error);
        break;
    case HONE_OP_MOE_GEMM:
        status = verify_moe_gemm(r, &made, error);
        break;
    case HONE_OP_ACT_QUANT:
    case HONE_OP_WEIGHT_QUANT:
        status = verify_quant(r, &made, error);
        break;
    case HONE_OP_FOLD:
        status = verify_fold(r, &made, error);
        break;
    case HONE_OP_MXFP4_FOLD:
        status = verify_mxfp4_fold(r, &made, error);
        break;
    case HONE_OP_SCALE_PACK:
        status = verify_scale_pack(r, &made, error);
        break;
    case HONE_OP_MOE_ALIGN:
        status = verify_moe_align(r, &made, error);
        break;
    case HONE_OP_MOE_COMBINE:
        status = verify_moe_combine(r, &made, error);
        break;
    case HONE_OP_TOPK:
        status = verify_topk(r, &made, error);
        break;
    case HONE_OP_MQA_LOGITS:
    case HONE_OP_MQA_LOGITS_PAGED:
        status = verify_mqa(r, &made, error);
        break;
    case HONE_OP_INDEX_PREPARE:
        status = verify_prepare(r, &made, error);
        break;
    case HONE_OP_KV_QUANT:
        status = verify_kv_quant(r, &made, error);
        break;
    case HONE_OP_KV_GATHER:
        status = verify_kv_gather(r, &made, error);
        break;
    default:
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: op %d has no reference",
                          r->problem->op);
    }
    if (status == HONE_OK) {
        *out = made;
    }
    return status;
}
