/* prover_wire.c - a device worker's messages, written and read. */
#include "tuner/prover_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROVER_CONFIG_BYTES = 512 };

static void put_double(wire_writer *w, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    wire_put_u64(w, bits);
}

static double get_double(wire_reader *r)
{
    const uint64_t bits = wire_get_u64(r);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static int32_t get_i32(wire_reader *r)
{
    const int64_t value = (int64_t)wire_get_u64(r);

    r->failed = r->failed || value < INT32_MIN || value > INT32_MAX;
    return (int32_t)value;
}

/* Into a text of its own. */
static void get_text(wire_reader *r, char *out, size_t capacity)
{
    const char *text = wire_get_text(r);

    r->failed = r->failed || strlen(text) >= capacity;
    snprintf(out, capacity, "%s", text);
}

/* NULL goes as "". */
static void put_text(wire_writer *w, const char *text)
{
    wire_put_text(w, text != NULL ? text : "");
}

static hone_status whole(const wire_reader *r, const char *what, hone_error *error)
{
    return !r->failed && r->at == r->len
               ? HONE_OK
               : status_set(error, HONE_WORKER, NULL, 0, "a malformed message: %s", what);
}

bool prover_put_setup(wire_writer *w, const prover_setup *setup)
{
    const routing *r = &setup->routing;

    wire_begin(w, WIRE_OPEN);
    wire_put_text(w, setup->spec);
    wire_put_u64(w, (uint64_t)setup->threads);
    wire_put_u64(w, setup->memory_bytes);
    wire_put_u64(w, (uint64_t)r->kind);
    put_double(w, r->exponent);
    wire_put_text(w, r->text);
    wire_put_bytes(w, r->share, r->share_len * sizeof *r->share);
    return wire_end(w);
}

hone_status prover_get_setup(const uint8_t *payload, size_t len, prover_setup *out,
                             hone_error *error)
{
    wire_reader r = {.bytes = payload, .len = len};
    prover_setup made = {.threads = 1};
    size_t bytes = 0;

    get_text(&r, made.spec, sizeof made.spec);
    made.threads = get_i32(&r);
    made.memory_bytes = wire_get_u64(&r);
    made.routing.kind = (inputs_routing)get_i32(&r);
    made.routing.exponent = get_double(&r);
    get_text(&r, made.routing.text, sizeof made.routing.text);
    const void *share = wire_get_bytes(&r, &bytes);
    if (whole(&r, "the device to open", error) != HONE_OK) {
        return HONE_WORKER;
    }
    made.routing.share_len = bytes / sizeof *made.routing.share;
    if (bytes > 0) {
        made.routing.share = malloc(bytes);
        if (made.routing.share == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a histogram of %zu bytes", bytes);
        }
        memcpy(made.routing.share, share, bytes);
    }
    *out = made;
    return HONE_OK;
}

static void put_code(wire_writer *w, const compiled *code)
{
    wire_put_u64(w, code->kernels_len);
    for (size_t i = 0; i < code->kernels_len; i++) {
        const jit_kernel *k = &code->kernels[i];
        wire_put_text(w, k->entry);
        wire_put_text(w, k->lowered);
        wire_put_u64(w, (uint64_t)k->registers);
        wire_put_u64(w, (uint64_t)k->static_shared_bytes);
        wire_put_u64(w, (uint64_t)k->stack_bytes);
        wire_put_u64(w, (uint64_t)k->spill_bytes);
    }
    wire_put_bytes(w, code->cubin, code->cubin_len);
    wire_put_bytes(w, code->ptx, code->ptx_len);
}

static void *copy_bytes(wire_reader *r, size_t *len)
{
    const void *bytes = wire_get_bytes(r, len);
    uint8_t *made = r->failed ? NULL : malloc(*len + 1);

    r->failed = r->failed || made == NULL;
    if (made != NULL) {
        memcpy(made, bytes, *len);
        made[*len] = 0;
    }
    return made;
}

static char *copy_text(wire_reader *r)
{
    char *made = strdup(wire_get_text(r));

    r->failed = r->failed || made == NULL;
    return made;
}

/* NULL without memory; `r` fails for code that is not whole. */
static compiled *get_code(wire_reader *r)
{
    compiled *code = calloc(1, sizeof *code);
    const uint64_t kernels = wire_get_u64(r);

    if (code == NULL || kernels == 0 || kernels > JIT_MAX_ENTRIES) {
        r->failed = true;
        return code;
    }
    code->kernels_len = kernels;
    for (size_t i = 0; i < kernels; i++) {
        jit_kernel *k = &code->kernels[i];
        k->entry = copy_text(r);
        k->lowered = copy_text(r);
        k->registers = get_i32(r);
        k->static_shared_bytes = get_i32(r);
        k->stack_bytes = get_i32(r);
        k->spill_bytes = get_i32(r);
    }
    code->cubin = copy_bytes(r, &code->cubin_len);
    code->ptx = copy_bytes(r, &code->ptx_len);
    return code;
}

bool prover_put_job(wire_writer *w, const templates *t, const engine_trial *trial,
                    const compiled *code)
{
    char problem[512], text[PROVER_CONFIG_BYTES];
    uint8_t digest[32];

    if (hone_problem_format(trial->problem, problem, sizeof problem, NULL) != HONE_OK ||
        manifest_config_format(trial->m, trial->config, text, sizeof text, NULL) != HONE_OK) {
        return false;
    }
    templates_digest(t, trial->m, digest);
    wire_begin(w, WIRE_PROVE);
    wire_put_text(w, problem);
    wire_put_text(w, manifest_name(trial->m));
    wire_put_bytes(w, digest, sizeof digest);
    wire_put_text(w, text);
    wire_put_u64(w, trial->seed);
    put_code(w, code);
    return wire_end(w);
}

static hone_status find_template(const templates *t, const char *name, const void *digest,
                                 size_t digest_len, const manifest **out, hone_error *error)
{
    uint8_t own[32];

    *out = templates_find(t, name);
    if (*out != NULL) {
        templates_digest(t, *out, own);
    }
    if (*out == NULL || digest_len != sizeof own || memcmp(own, digest, sizeof own) != 0) {
        return status_set(error, HONE_ENVIRONMENT, name, 0,
                          "hone-prover is of another build than hone; install both together");
    }
    return HONE_OK;
}

hone_status prover_get_job(const uint8_t *payload, size_t len, const templates *t, prover_job *out,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    wire_reader r = {.bytes = payload, .len = len};
    prover_job job = {.seed = 0};
    size_t digest_len = 0;
    const char *problem = wire_get_text(&r), *name = wire_get_text(&r);
    const void *digest = wire_get_bytes(&r, &digest_len);
    const char *text = wire_get_text(&r);

    job.seed = wire_get_u64(&r);
    job.code = get_code(&r);
    TRY(whole(&r, "a candidate", error));
    TRY(find_template(t, name, digest, digest_len, &job.m, error));
    TRY(hone_problem_parse(problem, &job.problem, error));
    TRY(manifest_config_parse(job.m, text, &job.config, error));
    *out = job;
    job.code = NULL;
done:
    compiled_free(job.code);
    return status;
}

/* The figures of a row that are no text, in one order for both ends. */
#define ROW_INTS(X)                                                                                \
    X(outcome)                                                                                     \
    X(registers)                                                                                   \
    X(shared_bytes) X(spill_bytes) X(local_bytes) X(timer) X(clock_sm_mhz) X(clock_mem_mhz)
#define ROW_DOUBLES(X)                                                                             \
    X(time_ns) X(cosine) X(rel_fro) X(calc_diff) X(max_err_ratio) X(flop) X(bytes) X(roof_ns)

static void put_result(wire_writer *w, const engine_result *result)
{
    const store_result *row = &result->row;

#define X(field) wire_put_u64(w, (uint64_t)(int64_t)row->field);
    ROW_INTS(X)
#undef X
#define X(field) put_double(w, row->field);
    ROW_DOUBLES(X)
#undef X
    wire_put_u64(w, row->checked_ctas);
    put_text(w, row->reason);
    put_text(w, row->counters);
    put_text(w, row->bound);
    put_text(w, row->cache_mode);
    put_text(w, row->tokens);
    wire_put_u64(w, row->samples_len);
    for (size_t i = 0; i < row->samples_len; i++) {
        put_double(w, row->samples_ns[i]);
    }
}

static void get_result(wire_reader *r, engine_result *out)
{
    store_result *row = &out->row;

    *row = (store_result){.reason = out->reason,
                          .counters = out->counters,
                          .bound = out->bound,
                          .cache_mode = out->cache_mode,
                          .samples_ns = out->samples_ns};
#define X(field) row->field = get_i32(r);
    ROW_INTS(X)
#undef X
#define X(field) row->field = get_double(r);
    ROW_DOUBLES(X)
#undef X
    row->checked_ctas = (uint32_t)wire_get_u64(r);
    get_text(r, out->reason, sizeof out->reason);
    get_text(r, out->counters, sizeof out->counters);
    get_text(r, out->bound, sizeof out->bound);
    get_text(r, out->cache_mode, sizeof out->cache_mode);
    get_text(r, out->tokens, sizeof out->tokens);
    row->tokens = out->tokens[0] != '\0' ? out->tokens : NULL;
    row->samples_len = wire_get_u64(r);
    r->failed = r->failed || row->samples_len > ENGINE_MAX_SAMPLES;
    for (size_t i = 0; !r->failed && i < row->samples_len; i++) {
        out->samples_ns[i] = get_double(r);
    }
}

bool prover_put_reply(wire_writer *w, const prover_reply *reply, const engine_result *result)
{
    wire_begin(w, WIRE_ANSWER);
    wire_put_u64(w, (uint64_t)reply->status);
    wire_put_text(w, reply->error.source);
    wire_put_text(w, reply->error.message);
    wire_put_u64(w, reply->spent);
    if (result != NULL) {
        put_result(w, result);
    }
    return !w->failed;
}

hone_status prover_get_reply(const uint8_t *payload, size_t len, prover_reply *reply,
                             engine_result *result, hone_error *error)
{
    wire_reader r = {.bytes = payload, .len = len};
    prover_reply made = {.status = (hone_status)get_i32(&r)};

    made.error.status = made.status;
    get_text(&r, made.error.source, sizeof made.error.source);
    get_text(&r, made.error.message, sizeof made.error.message);
    made.spent = wire_get_u64(&r) != 0;
    if (result != NULL) {
        get_result(&r, result);
    }
    *reply = made;
    return whole(&r, "a verdict", error);
}
