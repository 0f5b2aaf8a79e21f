/* compiled.c - what a compile gives, and which kernels a plan asks for. */
#include "runtime/jit_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void compiled_free(compiled *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < JIT_MAX_ENTRIES; i++) {
        free(c->kernels[i].entry);
        free(c->kernels[i].lowered);
        free(c->kernels[i].remark);
    }
    free(c->cubin);
    free(c->ptx);
    free(c->log);
    free(c);
}

int32_t compiled_spill_bytes(const compiled *c)
{
    int32_t most = 0;

    for (size_t i = 0; i < c->kernels_len; i++) {
        most = c->kernels[i].spill_bytes > most ? c->kernels[i].spill_bytes : most;
    }
    return most;
}

bool compiled_flaw(const compiled *c, char *why, size_t capacity)
{
    for (size_t i = 0; i < c->kernels_len; i++) {
        const jit_kernel *k = &c->kernels[i];
        if (k->spill_bytes > 0) {
            snprintf(why, capacity, "spills %d bytes of a thread", k->spill_bytes);
            return true;
        }
        if (k->stack_bytes > 0) {
            snprintf(why, capacity, "keeps %d bytes of a thread in local memory", k->stack_bytes);
            return true;
        }
        if (k->remarks > 0) {
            snprintf(why, capacity, "ptxas: %s", k->remark);
            return true;
        }
    }
    if (capacity > 0) {
        why[0] = '\0';
    }
    return false;
}

/* A count and its text go together. */
static bool remarks_whole(const kernel_entry *entry)
{
    for (uint32_t i = 0; i < entry->functions_len; i++) {
        const kernel_function *f = &entry->functions[i];
        if ((f->remarks > 0) != (f->remark != NULL)) {
            return false;
        }
    }
    return true;
}

hone_status jit_answer_adopt(const jit_request *request, kernel_entry *entry, compiled **out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    compiled *c = calloc(1, sizeof *c);

    if (c == NULL) {
        return status_set(error, HONE_NO_MEMORY, request->name, 0, "a compiled kernel");
    }
    if (entry->functions_len != request->entries_len || entry->cubin == NULL ||
        entry->ptx == NULL || !remarks_whole(entry)) {
        status = status_set(error, HONE_STORE_DAMAGED, request->name, 0,
                            "a kernel cache entry lacks parts");
        goto done;
    }
    for (size_t i = 0; i < request->entries_len; i++) {
        kernel_function *f = &entry->functions[i];
        c->kernels[i] = (jit_kernel){.entry = strdup(request->entries[i]),
                                     .lowered = strdup(f->name),
                                     .registers = f->registers,
                                     .static_shared_bytes = f->shared_bytes,
                                     .stack_bytes = f->local_bytes,
                                     .spill_bytes = f->spill_bytes,
                                     .remarks = f->remarks,
                                     .remark = f->remark};
        f->remark = NULL;
        if (c->kernels[i].entry == NULL || c->kernels[i].lowered == NULL) {
            status = status_set(error, HONE_NO_MEMORY, request->name, 0, "a kernel's name");
            goto done;
        }
    }
    c->kernels_len = request->entries_len;
    c->cubin = entry->cubin;
    c->cubin_len = entry->cubin_len;
    c->ptx = entry->ptx;
    c->ptx_len = entry->ptx_len;
    c->log = entry->log != NULL ? entry->log : strdup("");
    c->compile_ns = (uint64_t)(entry->compile_ms * 1e6);
    entry->cubin = NULL;
    entry->ptx = NULL;
    entry->log = NULL;
    *out = c;
    c = NULL;
done:
    compiled_free(c);
    return status;
}

hone_status jit_request_plan(const templates *t, const manifest *m, const plan *p, int32_t arch,
                             jit_request *out, hone_error *error)
{
    hone_status status = HONE_OK;
    jit_request request = {.name = manifest_name(m), .arch = arch};

    TRY(templates_source(t, m, &request.source, error));
    templates_digest(t, m, request.digest);
    for (uint32_t i = 0; i < p->launches_len; i++) {
        size_t known = 0;
        while (known < request.entries_len &&
               strcmp(request.entries[known], p->launches[i].entry) != 0) {
            known++;
        }
        if (known == request.entries_len) {
            request.entries[request.entries_len++] = p->launches[i].entry;
        }
    }
    *out = request;
done:
    return status;
}
