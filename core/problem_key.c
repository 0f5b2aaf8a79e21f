/* problem_key.c - a problem's identity as bytes, its hash, and back.
 *
 * The key is version, op (4 bytes) and the op's fields in table order, little endian. Every field
 * is a member of the op's struct in the same order without gaps (tests/core proves it against the
 * table), so that on a little-endian host the key is one copy. */
#include "core/problem.h"

#include <string.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "keys are copied from memory");

#define HEAD_BYTES 5

/* Bytes of an op's fields: up to the end of its last one; the rest of the struct is padding. */
static size_t fields_bytes(int32_t op)
{
    switch (op) {
    case HONE_OP_FP8_GEMM:
        return offsetof(hone_fp8_gemm, align) + sizeof(int32_t);
    case HONE_OP_ACT_QUANT:
        return offsetof(hone_act_quant, align) + sizeof(int32_t);
    case HONE_OP_KV_QUANT:
        return offsetof(hone_kv_quant, align) + sizeof(int32_t);
    case HONE_OP_MXFP4_FOLD:
        return offsetof(hone_mxfp4_fold, align) + sizeof(int32_t);
    case HONE_OP_SCALE_PACK:
        return offsetof(hone_scale_pack, align) + sizeof(int32_t);
    case HONE_OP_FOLD:
        return offsetof(hone_fold, align) + sizeof(int32_t);
    case HONE_OP_WEIGHT_QUANT:
        return offsetof(hone_weight_quant, align) + sizeof(int32_t);
    case HONE_OP_MOE_GEMM:
        return offsetof(hone_moe_gemm, align) + sizeof(int32_t);
    case HONE_OP_MOE_ALIGN:
        return offsetof(hone_moe_align, align) + sizeof(int32_t);
    case HONE_OP_MOE_COMBINE:
        return offsetof(hone_moe_combine, align) + sizeof(int32_t);
    case HONE_OP_TOPK:
        return offsetof(hone_topk, align) + sizeof(int32_t);
    case HONE_OP_MQA_LOGITS:
        return offsetof(hone_mqa_logits, align) + sizeof(int32_t);
    case HONE_OP_MQA_LOGITS_PAGED:
        return offsetof(hone_mqa_logits_paged, align) + sizeof(int32_t);
    case HONE_OP_INDEX_PREPARE:
        return offsetof(hone_index_prepare, align) + sizeof(int32_t);
    case HONE_OP_KV_GATHER:
        return offsetof(hone_kv_gather, align) + sizeof(int32_t);
    default:
        return 0;
    }
}

size_t problem_key(const hone_problem *problem, uint8_t key[PROBLEM_KEY_MAX])
{
    size_t bytes = fields_bytes(problem->op);

    if (bytes == 0) {
        return 0;
    }
    key[0] = PROBLEM_KEY_VERSION;
    memcpy(key + 1, &problem->op, sizeof problem->op);
    memcpy(key + HEAD_BYTES, &problem->as, bytes);
    return HEAD_BYTES + bytes;
}

problem_hash problem_key_hash(const uint8_t *key, size_t len)
{
    XXH128_hash_t hash = XXH3_128bits(key, len);

    return (problem_hash){hash.low64, hash.high64};
}

hone_status problem_from_key(const uint8_t *key, size_t len, hone_problem *out, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_problem made;
    int32_t op = 0;

    if (len < HEAD_BYTES || key[0] != PROBLEM_KEY_VERSION) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "a problem key of another version");
    }
    memcpy(&op, key + 1, sizeof op);
    memset(&made, 0, sizeof made);
    made.size = sizeof made;
    made.op = op;
    if (fields_bytes(op) == 0 || len != HEAD_BYTES + fields_bytes(op)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "a problem key of %zu bytes for op %d",
                          len, op);
    }
    memcpy(&made.as, key + HEAD_BYTES, fields_bytes(op));
    TRY(hone_problem_check(&made, error));
    *out = made;
done:
    return status;
}

bool problem_from_key_like(const uint8_t *key, size_t len, const hone_problem *like,
                           hone_problem *out)
{
    const size_t bytes = fields_bytes(like->op);
    const uint8_t *fields_at = key + HEAD_BYTES;
    size_t count = 0, sizes = 0;
    int32_t op = 0;

    if (bytes == 0 || len != HEAD_BYTES + bytes || key[0] != PROBLEM_KEY_VERSION) {
        return false;
    }
    memcpy(&op, key + 1, sizeof op);
    const problem_field *fields = problem_fields(like->op, &count);
    for (; sizes < count && fields[sizes].kind == PROBLEM_SIZE; sizes++) {
        int64_t value;
        memcpy(&value, fields_at + sizes * sizeof value, sizeof value);
        if (value < fields[sizes].least || value > fields[sizes].most) {
            return false;
        }
    }
    sizes *= sizeof(int64_t);
    if (op != like->op ||
        memcmp(fields_at + sizes, (const uint8_t *)&like->as + sizes, bytes - sizes) != 0) {
        return false;
    }
    *out = *like;
    memcpy(&out->as, fields_at, sizes);
    return true;
}

bool problem_family(const hone_problem *problem, hone_problem *key, int64_t *size)
{
    size_t count = 0;
    const problem_field *fields = problem_fields(problem->op, &count);
    bool rounds = false;

    *key = *problem;
    for (size_t i = 0; i < count; i++) {
        if (fields[i].bucket) {
            *size = problem_field_get(problem, &fields[i]);
            rounds = true;
        }
        if (fields[i].bucket || fields[i].free) {
            problem_field_set(key, &fields[i], 0);
        }
    }
    return rounds;
}
