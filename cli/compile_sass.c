/* compile_sass.c - see compile_sass.h. */
#include "cli/compile_sass.h"

#include "bench/sass.h"

#include <stdio.h>
#include <string.h>

/* A parameter's value; 0 when the template has none of this name. */
static int64_t parameter(const compile_result *r, const char *name)
{
    for (uint32_t i = 0; i < manifest_params_len(r->m); i++) {
        if (strcmp(manifest_param_name(r->m, i), name) == 0) {
            return r->config->value[i];
        }
    }
    return 0;
}

/* Multiply-adds that the limits are told for, and what they are. */
static double work_of(const compile_result *r, const sass_count *loop, char text[64])
{
    const int64_t rows = parameter(r, "block_m");
    const int64_t columns = parameter(r, "block_n");

    if (rows > 0 && columns > 0) {
        snprintf(text, 64, "128 of K, tile %lldx%lld", (long long)rows, (long long)columns);
        return 128.0 * (double)rows * (double)columns;
    }
    snprintf(text, 64, "one pass of a warp");
    return sass_macs(loop);
}

/* `loop` NULL: the kernel has no main loop. */
static void print_row(const char *name, int64_t kernel, const sass_loop *loop, int64_t of_loop)
{
    if (loop == NULL) {
        printf("    %-16s %6lld\n", name, (long long)kernel);
    } else {
        printf("    %-16s %6lld %10lld\n", name, (long long)kernel, (long long)of_loop);
    }
}

static void print_limits(const compile_result *r, const sass_count *loop)
{
    char work[64];
    const double macs = work_of(r, loop, work);
    const sass_limits l = sass_limits_of(loop, r->gpu, macs);

    printf(
        "    %s on %s: tensor %.0f, FP32 %.0f, issue %.0f clocks of an SM: at most %.1f%% of the "
        "tensor peak\n",
        work, r->gpu->facts.name, l.tensor_clocks, l.fp32_clocks, l.issue_clocks, l.tensor_percent);
}

hone_status compile_sass_print(const compile_result *r, const jit_kernel *kernel, hone_error *error)
{
    hone_status status = HONE_OK;
    sass_function f = {.loops = NULL};
    const sass_count none = {.instructions = 0};

    TRY(sass_read(r->code->cubin, r->code->cubin_len, kernel->lowered, &f, error));
    const sass_loop *l = sass_main_loop(&f);
    const sass_count *count = l != NULL ? &l->count : &none;
    printf("    %-16s %6s %10s\n", "SASS", "kernel", l != NULL ? "main loop" : "");
    print_row("instructions", f.all.instructions, l, count->instructions);
    for (int i = 0; i < SASS_KINDS; i++) {
        if (f.all.kinds[i] > 0) {
            print_row(sass_kind_name((sass_kind)i), f.all.kinds[i], l, count->kinds[i]);
        }
    }
    print_row("stall clocks", f.all.stall_clocks, l, count->stall_clocks);
    print_row("highest register", f.all.highest_register, l, count->highest_register);
    if (l != NULL) {
        print_limits(r, count);
    }
    sass_function_free(&f);
done:
    return status;
}

static json_t *count_json(const sass_count *count)
{
    json_t *object = json_pack("{s:I, s:I, s:i}", "instructions", (json_int_t)count->instructions,
                               "stall_clocks", (json_int_t)count->stall_clocks, "highest_register",
                               count->highest_register);

    for (int i = 0; i < SASS_KINDS; i++) {
        json_object_set_new(object, sass_kind_name((sass_kind)i),
                            json_integer((json_int_t)count->kinds[i]));
    }
    return object;
}

hone_status compile_sass_json(const compile_result *r, const jit_kernel *kernel, json_t **out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    sass_function f = {.loops = NULL};
    char work[64];

    TRY(sass_read(r->code->cubin, r->code->cubin_len, kernel->lowered, &f, error));
    json_t *object = json_pack("{s:o}", "kernel", count_json(&f.all));
    const sass_loop *l = sass_main_loop(&f);
    if (l != NULL) {
        const double macs = work_of(r, &l->count, work);
        const sass_limits limits = sass_limits_of(&l->count, r->gpu, macs);
        json_object_set_new(object, "main_loop", count_json(&l->count));
        json_object_set_new(object, "limits",
                            json_pack("{s:s, s:s, s:f, s:f, s:f, s:f}", "of", work, "gpu",
                                      r->gpu->facts.name, "tensor_clocks", limits.tensor_clocks,
                                      "fp32_clocks", limits.fp32_clocks, "issue_clocks",
                                      limits.issue_clocks, "tensor_percent",
                                      limits.tensor_percent));
    }
    *out = object;
    sass_function_free(&f);
done:
    return status;
}
