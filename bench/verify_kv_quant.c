/* verify_kv_quant.c - a paged KV cache after tokens were put into it, byte for byte. */
#include "bench/verify_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Take over into `expected` what the rule lets a tile of a raw fp32 record differ in. */
static void allow_raw_tile(const uint8_t *after, uint8_t *expected, int64_t data, int64_t scale_at,
                           int32_t tile)
{
    float got = 0.0f, made = 0.0f;

    memcpy(&got, after + scale_at, sizeof got);
    memcpy(&made, expected + scale_at, sizeof made);
    if (verify_scale_agrees(got, made, true) != 0) {
        return;
    }
    memcpy(expected + scale_at, &got, sizeof got);
    for (int64_t i = data; i < data + tile; i++) {
        expected[i] = verify_code_agrees(after[i], expected[i], 0) ? after[i] : expected[i];
    }
}

static void allow_raw(const hone_kv_quant *p, const record_layout *layout, const verify_request *r,
                      uint8_t *expected)
{
    for (int64_t token = 0; token < p->tokens; token++) {
        int64_t slot = 0, page = 0, within = 0;
        memcpy(&slot, r->before->image[1] + token * 8, sizeof slot);
        if (slot < 0 || slot / p->page_size >= p->pages) {
            continue;
        }
        page = slot / p->page_size * p->page_stride;
        within = slot % p->page_size;
        for (int32_t tile = 0; tile < record_tiles(layout); tile++) {
            allow_raw_tile(r->after[2], expected,
                           page + record_data_offset(layout, within) + (int64_t)tile * layout->tile,
                           page + record_scale_offset(layout, within, tile), layout->tile);
        }
    }
}

static void compare_cache(const hone_kv_quant *p, const uint8_t *got, const uint8_t *expected,
                          uint64_t len, verify_result *out)
{
    uint64_t at = 0;

    if (memcmp(got, expected, len) == 0) {
        return;
    }
    while (got[at] == expected[at]) {
        at++;
    }
    verify_fail(out,
                "cache byte %" PRIu64 " (page %" PRIu64 ", byte %" PRIu64
                " of it): got 0x%02x, expected 0x%02x%s",
                at, at / (uint64_t)p->page_stride, at % (uint64_t)p->page_stride, got[at],
                expected[at], got[at] == VERIFY_RED_ZONE_BYTE ? ", left untouched" : "");
}

/* A counter after the launch. */
static void compare_counter(const verify_request *r, size_t operand, uint64_t expected,
                            verify_result *out)
{
    uint64_t got = 0;

    memcpy(&got, r->after[operand], sizeof got);
    if (got != expected) {
        verify_fail(out, "%s: got %" PRIu64 ", expected %" PRIu64, r->before->operand[operand].name,
                    got, expected);
    }
}

void verify_memo_free(verify_memo *memo)
{
    free(memo->cache);
    *memo = (verify_memo){0};
}

/* The whole cache as it must be, and the counters: made once for the same inputs. */
static hone_status expect(const verify_request *r, verify_memo *memo, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t len = r->before->operand[2].bytes;
    verify_memo made = {0};

    if (memo->cache != NULL) {
        return HONE_OK;
    }
    made.cache = malloc(len + 1);
    if (made.cache == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: an image of the cache");
    }
    memcpy(made.cache, r->before->image[2], len);
    memcpy(&made.dropped, r->before->image[3], sizeof made.dropped);
    memcpy(&made.nonfinite, r->before->image[4], sizeof made.nonfinite);
    TRY(reference_kv_quant(&r->problem->as.kv_quant, r->before, made.cache, &made.dropped,
                           &made.nonfinite, error));
    *memo = made;
    made = (verify_memo){0};
done:
    verify_memo_free(&made);
    return status;
}

/* Raw scales let a candidate differ, each in its own way: `allowed` is what this one may leave. */
static hone_status compare_raw(const verify_request *r, const record_layout *layout,
                               const uint8_t *expected, verify_result *out, hone_error *error)
{
    const hone_kv_quant *p = &r->problem->as.kv_quant;
    const uint64_t len = r->before->operand[2].bytes;
    uint8_t *allowed = malloc(len + 1);

    if (allowed == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: an image of the cache");
    }
    memcpy(allowed, expected, len);
    allow_raw(p, layout, r, allowed);
    compare_cache(p, r->after[2], allowed, len, out);
    free(allowed);
    return HONE_OK;
}

hone_status verify_kv_quant(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_kv_quant *p = &r->problem->as.kv_quant;
    record_layout layout = {0};
    verify_memo own = {0}, *memo = r->memo != NULL ? r->memo : &own;

    if (r->ctas_run != r->ctas_total) {
        return status_set(
            error, HONE_UNSUPPORTED, NULL, 0,
            "verify: kv_quant is proved whole; a token without a slot shows in no output");
    }
    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    TRY(expect(r, memo, error));
    out->compared = (uint64_t)p->tokens * (uint64_t)layout.token_bytes;
    if (verify_rule_is_raw(p->record.rule)) {
        TRY(compare_raw(r, &layout, memo->cache, out, error));
    } else {
        compare_cache(p, r->after[2], memo->cache, r->before->operand[2].bytes, out);
    }
    compare_counter(r, 3, memo->dropped, out);
    compare_counter(r, 4, memo->nonfinite, out);
done:
    verify_memo_free(&own);
    return status;
}
