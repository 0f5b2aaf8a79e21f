/* form_operands.c - operands for a form, by its shape and its type; those that follow no rule are
 * in a table. */
#include "tests/emulator/form_operands.h"

#include "core/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char type_class(const char *type)
{
    size_t len = strlen(type);
    if (strcmp(type, "pred") == 0) {
        return 'p';
    }
    if (len >= 2 && strcmp(type + len - 2, "64") == 0) {
        return 'x';
    }
    return len >= 1 && (type[len - 1] == '6' || type[len - 1] == '8') ? 'h' : 'r';
}

static void registers(char *text, char kind, int count, int first)
{
    size_t used = 0;
    if (count == 1) {
        sprintf(text, "%%%c%d", kind, first);
        return;
    }
    for (int n = 0; n < count; n++) {
        used += (size_t)sprintf(text + used, "%s%%%c%d", n == 0 ? "{" : ", ", kind, first + n);
    }
    strcpy(text + used, "}");
}

static int vector_of(const char *form)
{
    return strstr(form, ".v2.") ? 2 : strstr(form, ".v4.") ? 4 : 1;
}

static const char *address_of(const char *form)
{
    return strstr(form, ".shared")  ? "[s+16]"
           : strstr(form, ".local") ? "[l]"
           : strstr(form, ".param") ? "[big]"
                                    : "[g]";
}

/* Operands of the forms that follow no rule. */
static const struct {
    const char *prefix, *operands;
} irregular[] = {
    {"atom.", "%r0, [s], %r1"},
    {"bar.arrive", "1, 64"},
    {"bar.sync", "0"},
    {"bar.warp.sync", "-1"},
    {"bfi.b32", "%r0, %r1, %r2, 3, 4"},
    {"bfi.b64", "%x0, %x1, %x2, 3, 4"},
    {"bra", "END"},
    {"cp.async.cg.shared.global.L2::cache_hint", "[%r0], [%x0], 16, %r2, %x3"},
    {"cp.async.cg.shared.global", "[%r0], [%x0], 16, %r2"},
    {"cp.async.commit_group", ""},
    {"cp.async.wait_group", "1"},
    {"cvt.f32.f16", "%r0, %h0"},
    {"cvt.rn.bf16.f32", "%h0, %r0"},
    {"cvt.rn.bf16x2.f32", "%r0, %r1, %r2"},
    {"cvt.rn.f16x2.", "%r0, %h0"},
    {"cvt.rn.satfinite.", "%h0, %r1, %r2"},
    {"cvta.", "%x0, %x1"},
    {"ldmatrix.", "{%r0, %r1, %r2, %r3}, [s]"},
    {"mma.sync.aligned.kind::mx", "{%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, "
                                  "{%r0,%r1,%r2,%r3}, %r10, {0, 1}, %r11, {%h0, %h1}"},
    {"mma.sync.", "{%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1,%r2,%r3}"},
    /* tier 2 */
    {"barrier.cluster.", ""},
    {"cp.async.bulk.commit_group", ""},
    {"cp.async.bulk.global.shared::cta.bulk_group", "[%x0], [s], 16"},
    {"cp.async.bulk.wait_group", "0"},
    {"cp.async.mbarrier.arrive", "[s]"},
    {"createpolicy.fractional", "%x0, 1.0"},
    {"elect.sync", "%r0|%p0, -1"},
    {"fence.proxy.tensormap::generic.acquire", "[%x0], 128"},
    {"fence.", ""},
    {"griddepcontrol.", ""},
    {"mapa.", "%r0, %r1, 1"},
    {"mbarrier.arrive.expect_tx", "_, [s], 16"},
    {"mbarrier.arrive.shared::cluster", "_, [%r1]"},
    {"mbarrier.arrive.shared::cta", "%x0, [s]"},
    {"mbarrier.init", "[s], 1"},
    {"mbarrier.try_wait", "%p0, [s], 0"},
    {"prefetch.tensormap", "[%x0]"},
    {"setmaxnreg", "40"},
    {"stmatrix.sync.aligned.x2", "[s], {%r0, %r1}"},
    {"stmatrix.sync.aligned.x4", "[s], {%r0, %r1, %r2, %r3}"},
    {"tensormap.replace.tile.global_address", "[s], %x0"},
    {"tensormap.replace.tile.global_dim", "[s], 0, %r1"},
    {"tensormap.replace.tile.global_stride", "[s], 0, %x1"},
    {"wgmma.fence", ""},
    {"wgmma.commit_group", ""},
    {"wgmma.wait_group", "0"},
    /* tier 3 */
    {"add.rn.f32x2", "%x0, %x1, %x2"},
    {"fma.rn.f32x2", "%x0, %x1, %x2, %x3"},
    {"cvt.rn.bf16x2.ue8m0x2", "%r0, %h1"},
    {"cvt.rp.satfinite.ue8m0x2", "%h0, %r1, %r2"},
    {"cvt.rz.satfinite.ue8m0x2", "%h0, %r1, %r2"},
    {"popc.", "%r0, %r1"},
    {"ret", ""},
    {"trap", ""},
    {"shfl.", "%r0|%p0, %r1, %r2, 31, -1"},
    {"shl.b64", "%x0, %x1, %r2"},
    {"shr.u64", "%x0, %x1, %r2"},
    {"shl.b16", "%h0, %h1, %r2"},
    {"vote.", "%r0, %p0, -1"},
    {"mul.wide.s32", "%x0, %r1, %r2"},
    {"mul.wide.u32", "%x0, %r1, %r2"},
    {"mul.wide.u16", "%r0, %h1, %h2"},
};

bool form_starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Tensor copies: coordinates by the rank, a multicast mask and a policy by their words. */
static void tensor_copy(const char *form, char *out)
{
    static const char *const coordinates[] = {"%r1", "%r1, %r2", "%r1, %r2, %r3",
                                              "%r1, %r2, %r3, %r4", "%r1, %r2, %r3, %r4, %r5"};
    const char *rank = strstr(form, "tensor.") + strlen("tensor.");
    const char *at = coordinates[*rank - '1'];

    if (strstr(form, "global.shared::cta") != NULL) {
        sprintf(out, "[%%x0, {%s}], [s]", at);
        return;
    }
    sprintf(out, "[s], [%%x0, {%s}], [s+512]%s%s", at,
            strstr(form, "multicast") != NULL ? ", %h1" : "",
            strstr(form, "cache_hint") != NULL ? ", %x2" : "");
}

/* wgmma from two descriptors: n / 2 accumulators, and the directions of 16-bit operands. */
static void warpgroup_product(const char *form, char *out)
{
    int n = atoi(strstr(form, "m64n") + strlen("m64n"));

    registers(out, 'r', n / 2, 0);
    sprintf(out + strlen(out), ", %%x1, %%x2, 1, 1, 1%s",
            strstr(form, "bf16") != NULL ? ", 0, 0" : "");
}

void form_operands(const char *form, char out[2048])
{
    static const char *const one[] = {"mov.", "not.", "neg.", "abs.",
                                      "rcp.", "ex2.", "lg2.", "sqrt."};
    static const char *const three[] = {"fma.", "mad."};
    const char *dot = strrchr(form, '.'), *type = dot != NULL ? dot + 1 : "";
    char value[64];
    char kind = type_class(type);
    int sources = 2;

    for (size_t n = 0; n < ARRAY_LEN(irregular); n++) {
        if (form_starts(form, irregular[n].prefix)) {
            strcpy(out, irregular[n].operands);
            return;
        }
    }
    if (strstr(form, "bulk.tensor.") != NULL) {
        tensor_copy(form, out);
        return;
    }
    if (form_starts(form, "wgmma.mma_async")) {
        warpgroup_product(form, out);
        return;
    }
    if (form_starts(form, "ld.") || form_starts(form, "st.")) {
        registers(value, kind, vector_of(form), 0);
        const char *parts[] = {value, address_of(form)};
        bool load = form[0] == 'l';
        if (form_starts(form, "ld.param") && vector_of(form) == 1 && kind == 'x') {
            parts[1] = "[data]";
        }
        sprintf(out, "%s, %s", parts[load ? 0 : 1], parts[load ? 1 : 0]);
        return;
    }
    if (form_starts(form, "cvt.")) {
        char copy[96];
        strcpy(copy, form);
        *strrchr(copy, '.') = '\0';
        sprintf(out, "%%%c0, %%%c1", type_class(strrchr(copy, '.') + 1), kind);
        return;
    }
    for (size_t n = 0; n < ARRAY_LEN(one); n++) {
        sources = form_starts(form, one[n]) ? 1 : sources;
    }
    for (size_t n = 0; n < ARRAY_LEN(three); n++) {
        sources = form_starts(form, three[n]) ? 3 : sources;
    }
    size_t used = (size_t)sprintf(out, "%%%c0", form_starts(form, "setp.") ? 'p' : kind);
    for (int n = 0; n < sources; n++) {
        used += (size_t)sprintf(out + used, ", %%%c%d", kind, n + 1);
    }
    if (form_starts(form, "selp.")) {
        sprintf(out + used, ", %%p0");
    }
}
