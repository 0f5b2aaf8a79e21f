/* launch.c - checks a choice's arguments against its problem, then launches. Nothing runs when a
 * check fails. */
#include "runtime/serving.h"

#include "runtime/check_values.h"

#include <stdlib.h>

/* What cuMemAlloc gives, and more than any kernel asks of its workspace. */
#define WORKSPACE_ALIGN 256

static int32_t operand_align(const hone_problem *problem)
{
    switch (problem->op) {
#define X(text, NAME, value)                                                                       \
    case HONE_OP_##NAME:                                                                           \
        return problem->as.text.align;
        HONE_OP_MAP(X)
#undef X
    default:
        return 1;
    }
}

static bool overlap(const hone_arg *a, uint64_t a_bytes, const hone_arg *b, uint64_t b_bytes)
{
    return a->address < b->address + b_bytes && b->address < a->address + a_bytes;
}

static hone_status check_one(const hone_arg *arg, const char *name, uint64_t bytes, uint64_t align,
                             hone_error *error)
{
    if (bytes == 0) {
        return HONE_OK;
    }
    if (arg->address == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, name, 0, "operand %s is NULL", name);
    }
    if (arg->bytes < bytes) {
        return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                          "operand %s has %llu bytes; the problem needs %llu", name,
                          (unsigned long long)arg->bytes, (unsigned long long)bytes);
    }
    if (arg->address % align != 0) {
        return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                          "operand %s is not aligned to %llu bytes", name,
                          (unsigned long long)align);
    }
    if (arg->address + bytes < arg->address) {
        return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                          "operand %s wraps around the address space", name);
    }
    return HONE_OK;
}

/* What is launched: the prepared problem's own plan, or one made for another size of its family. */
typedef struct launch_call {
    const served *served;
    const module *module;
    const plan *plan;
    _Atomic(kept_maps *) *maps; /* NULL: none are kept */
    const hone_problem *problem;
    const hone_operand *operands;
    size_t operands_len;
    uint64_t offered; /* workspace that the choice asked for; another size may need less of it */
} launch_call;

/* What is written may not lie in anything else; the workspace, last in `args`, is written too. */
static hone_status check_overlaps(const launch_call *c, const hone_arg *args, size_t count,
                                  hone_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const bool workspace = i == c->operands_len;
        const uint64_t bytes = workspace ? c->plan->workspace_bytes : c->operands[i].bytes;
        if (!workspace && (c->operands[i].access & 2) == 0) {
            continue;
        }
        for (size_t j = 0; j < c->operands_len; j++) {
            if (j != i && overlap(&args[i], bytes, &args[j], c->operands[j].bytes)) {
                return status_set(error, HONE_BAD_ARGUMENT, c->operands[j].name, 0,
                                  "operand %s overlaps %s, which is written", c->operands[j].name,
                                  workspace ? "the workspace" : c->operands[i].name);
            }
        }
    }
    return HONE_OK;
}

/* A cache is read and written as the record that it was begun with. */
static hone_status check_record(const hone_problem *problem, const hone_arg *arg, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_kv_quant *quant = &problem->as.kv_quant;
    const hone_kv_gather *gather = &problem->as.kv_gather;
    const hone_mqa_logits_paged *logits = &problem->as.mqa_logits_paged;
    const hone_index_prepare *prepare = &problem->as.index_prepare;
    uint64_t id = 0;

    if (arg->record == 0) {
        return HONE_OK;
    }
    switch (problem->op) {
    case HONE_OP_KV_QUANT:
        TRY(hone_record_id(&quant->record, quant->page_size, &id, error));
        break;
    case HONE_OP_KV_GATHER:
        TRY(hone_record_id(&gather->record, gather->page_size, &id, error));
        break;
    case HONE_OP_INDEX_PREPARE:
        TRY(hone_record_id(&prepare->record, prepare->page_size, &id, error));
        break;
    case HONE_OP_MQA_LOGITS_PAGED:
        TRY(hone_record_id(&logits->record, logits->page_size, &id, error));
        break;
    default:
        return HONE_OK;
    }
    TRY(hone_record_match(arg->record, id, error));
done:
    return status;
}

static hone_status check_args(const launch_call *c, const hone_arg *args, size_t count,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t needed = c->plan->workspace_bytes, align = (uint64_t)operand_align(c->problem);
    const bool workspace = needed > 0 || c->offered > 0;

    if (args == NULL || count != c->operands_len + workspace) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%zu arguments; the problem takes %zu operands%s", count, c->operands_len,
                          workspace ? " and the workspace" : "");
    }
    for (size_t i = 0; i < c->operands_len; i++) {
        TRY(check_one(&args[i], c->operands[i].name, c->operands[i].bytes, align, error));
        TRY(check_record(c->problem, &args[i], error));
    }
    if (workspace) {
        TRY(check_one(&args[c->operands_len], "workspace", needed, WORKSPACE_ALIGN, error));
    }
    TRY(check_overlaps(c, args, count, error));
done:
    return status;
}

/* The plan's encoded maps; made here by the first launch. NULL when it has none. */
static kept_maps *maps_of(const launch_call *c)
{
    kept_maps *there = NULL;

    if (c->maps == NULL || c->plan->launches[0].maps_len == 0) {
        return NULL;
    }
    there = atomic_load_explicit(c->maps, memory_order_acquire);
    if (there == NULL) {
        kept_maps *made = kept_maps_make(c->plan);
        if (made == NULL ||
            atomic_compare_exchange_strong_explicit(c->maps, &there, made, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            return made;
        }
        kept_maps_free(made); /* another thread was faster */
    }
    return there;
}

static hone_status launch(const launch_call *c, const hone_arg *args, size_t count, void *stream,
                          hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t addresses[HONE_MAX_OPERANDS];

    TRY(check_args(c, args, count, error));
    if (__builtin_expect(c->served->checked != HONE_CHECKED_OFF, 0)) {
        const check_request request = {.device = c->served->device,
                                       .problem = c->problem,
                                       .operands = c->operands,
                                       .args = args,
                                       .stream = stream,
                                       .level = c->served->checked};
        TRY(check_values(&request, error));
    }
    for (size_t i = 0; i < c->operands_len; i++) {
        addresses[i] = args[i].address;
    }
    const uint64_t workspace = c->plan->workspace_bytes > 0 ? args[c->operands_len].address : 0;
    TRY(module_launch_kept(c->module, c->plan, maps_of(c), addresses, c->operands_len, workspace,
                           stream, error));
done:
    return status;
}

static hone_status plan_other_size(const served *s, const hone_problem *problem, kept_size **out,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    kept_size *made = calloc(1, sizeof *made);

    if (made == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a plan");
    }
    made->problem = *problem;
    TRY(hone_operands(problem, made->operands, &made->operands_len, error));
    TRY(manifest_plan(s->m, problem, &s->device->gpu.facts, &s->config, &made->plan, error));
    *out = made;
    made = NULL;
done:
    free(made);
    return status;
}

/* The problem is another size of the family that the kernel was prepared for. Planning it takes
 * longer than launching it, so that the plan is kept while there is room. */
static hone_status launch_other_size(const hone_choice *choice, served *s, const hone_arg *args,
                                     size_t count, void *stream, hone_error *error)
{
    hone_status status = HONE_OK;
    kept_size *own = NULL,
              *size = kept_sizes_find(&s->others, &choice->problem, table_key_len(s->problem.op));

    if (size == NULL) {
        TRY(plan_other_size(s, &choice->problem, &size, error));
        own = kept_sizes_add(&s->others, size) ? NULL : size;
    }
    const launch_call call = {.served = s,
                              .module = s->module,
                              .plan = &size->plan,
                              .maps = own == NULL ? &size->maps : NULL,
                              .problem = &size->problem,
                              .operands = size->operands,
                              .operands_len = size->operands_len,
                              .offered = choice->workspace_bytes};
    TRY(launch(&call, args, count, stream, error));
done:
    free(own);
    return status;
}

hone_status hone_launch(const hone_choice *choice, const hone_arg *args, size_t count, void *stream,
                        hone_error *error)
{
    if (choice == NULL || choice->size != sizeof *choice || choice->kernel == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "the choice was not filled by hone_lookup");
    }
    served *s = (served *)choice->kernel; /* the runtime's own, which is not const */
    if (s->module == NULL) {
        return HONE_OK; /* nothing to write */
    }
    const size_t key_len = table_key_len(choice->problem.op);
    if (choice->problem.op != s->problem.op ||
        memcmp(&choice->problem.as, &s->problem.as, key_len) != 0) {
        return launch_other_size(choice, s, args, count, stream, error);
    }
    const launch_call call = {.served = s,
                              .module = s->module,
                              .plan = &s->plan,
                              .maps = &s->maps,
                              .problem = &s->problem,
                              .operands = s->operands,
                              .operands_len = s->operands_len,
                              .offered = choice->workspace_bytes};
    return launch(&call, args, count, stream, error);
}
