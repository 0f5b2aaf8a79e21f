/* launch.c - checks a choice's arguments against its problem, then launches. Nothing runs when a
 * check fails. */
#include "runtime/serving.h"

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

static hone_status check_args(const hone_problem *problem, const hone_operand *operands,
                              size_t operands_len, uint64_t workspace_bytes, const hone_arg *args,
                              size_t count, hone_error *error)
{
    hone_status status = HONE_OK;
    const size_t wanted = operands_len + (workspace_bytes > 0);
    const uint64_t align = (uint64_t)operand_align(problem);

    if (count != wanted || args == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%zu arguments; the problem takes %zu operands%s", count, operands_len,
                          workspace_bytes > 0 ? " and the workspace" : "");
    }
    for (size_t i = 0; i < operands_len; i++) {
        TRY(check_one(&args[i], operands[i].name, operands[i].bytes, align, error));
    }
    if (workspace_bytes > 0) {
        TRY(check_one(&args[operands_len], "workspace", workspace_bytes, WORKSPACE_ALIGN, error));
    }
    /* What is written may not lie in anything else, the workspace included. */
    for (size_t i = 0; i < wanted; i++) {
        const bool i_written = i == operands_len || operands[i].access & 2;
        const uint64_t i_bytes = i == operands_len ? workspace_bytes : operands[i].bytes;
        for (size_t j = 0; j < operands_len && i_written; j++) {
            if (j != i && overlap(&args[i], i_bytes, &args[j], operands[j].bytes)) {
                return status_set(error, HONE_BAD_ARGUMENT, operands[j].name, 0,
                                  "operand %s overlaps %s, which is written", operands[j].name,
                                  i == operands_len ? "workspace" : operands[i].name);
            }
        }
    }
done:
    return status;
}

static hone_status launch_plan(const served *s, const plan *p, const hone_problem *problem,
                               const hone_operand *operands, size_t operands_len,
                               const hone_arg *args, size_t count, void *stream, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t addresses[HONE_MAX_OPERANDS];

    /* A choice for a covered size may name a larger workspace than its own plan needs; it is taken
     * all the same. */
    const bool extra = p->workspace_bytes == 0 && count == operands_len + 1;
    TRY(check_args(problem, operands, operands_len, p->workspace_bytes, args, count - extra,
                   error));
    for (size_t i = 0; i < operands_len; i++) {
        addresses[i] = args[i].address;
    }
    const uint64_t workspace = p->workspace_bytes > 0 ? args[operands_len].address : 0;
    TRY(module_launch(s->module, p, addresses, operands_len, workspace, stream, error));
done:
    return status;
}

/* The problem is another size of the family that the kernel was prepared for. */
static hone_status launch_other_size(const served *s, const hone_problem *problem,
                                     const hone_arg *args, size_t count, void *stream,
                                     hone_error *error)
{
    hone_status status = HONE_OK;
    hone_operand operands[HONE_MAX_OPERANDS];
    size_t operands_len = 0;
    plan *p = malloc(sizeof *p);

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a plan");
    }
    TRY(hone_operands(problem, operands, &operands_len, error));
    TRY(manifest_plan(s->m, problem, &s->device->gpu.facts, &s->config, p, error));
    TRY(launch_plan(s, p, problem, operands, operands_len, args, count, stream, error));
done:
    free(p);
    return status;
}

hone_status hone_launch(const hone_choice *choice, const hone_arg *args, size_t count, void *stream,
                        hone_error *error)
{
    if (choice == NULL || choice->size != sizeof *choice || choice->kernel == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "the choice was not filled by hone_lookup");
    }
    const served *s = choice->kernel;
    if (s->module == NULL) {
        return HONE_OK; /* nothing to write */
    }
    const size_t key_len = table_key_len(choice->problem.op);
    if (choice->problem.op == s->problem.op &&
        memcmp(&choice->problem.as, &s->problem.as, key_len) == 0) {
        return launch_plan(s, &s->plan, &s->problem, s->operands, s->operands_len, args, count,
                           stream, error);
    }
    return launch_other_size(s, &choice->problem, args, count, stream, error);
}
