/* serve.c - what a serving engine does with libhone.so: open, prepare, look up, launch, check the
 * numbers.
 *
 * Usage: serve STORE DEVICE [PROBLEM]. PROBLEM is an fp8_gemm with f32 scales in row layout and f32
 * out. The engine keeps its own driver handle: it opens the driver that hone_open opened, and works
 * in the context that it made current. Exit 0 when all numbers agree with a float64 product. */
#include <hone.h>

#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOL(name)      SYMBOL_TEXT(name)
#define SYMBOL_TEXT(name) #name

#define STANDARD_PROBLEM                                                                           \
    "fp8_gemm:m=48,n=160,k=384,recipe=f32-1x128-128x128,out=f32,a_scale_layout=row,b_scale_"       \
    "layout=row"

typedef struct engine {
    hone_runtime *runtime;
    hone_problem problem;
    hone_operand operands[HONE_MAX_OPERANDS];
    size_t operands_len;
    void *host[HONE_MAX_OPERANDS + 1]; /* operands, then the workspace (no host copy) */
    hone_arg args[HONE_MAX_OPERANDS + 1];
    __typeof__(&cuMemAlloc) allocate;
    __typeof__(&cuMemFree) release;
    __typeof__(&cuMemcpyHtoD) upload;
    __typeof__(&cuMemcpyDtoH) download;
    __typeof__(&cuCtxSynchronize) synchronize;
} engine;

/* e4m3 codes and what they are worth: enough to see a wrong row, column, group or scale. */
static const struct {
    unsigned char code;
    double value;
} numbers[] = {{0x38, 1},    {0x30, 0.5}, {0x40, 2}, {0xb8, -1},
               {0xb0, -0.5}, {0x3c, 1.5}, {0x00, 0}, {0xc0, -2}};

static int complain(const char *what, const hone_error *error)
{
    fprintf(stderr, "serve: %s: %s (%s%s%s)\n", what, error->message,
            hone_status_text(error->status), error->source[0] != '\0' ? ": " : "", error->source);
    return 1;
}

/* The driver is loaded already; the emulator's name is there when the device is an emulated one. */
static int find_driver(engine *e)
{
    void *driver = dlopen("libhone_emu.so", RTLD_NOW | RTLD_NOLOAD);

    driver = driver != NULL ? driver : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == NULL) {
        fprintf(stderr, "serve: no driver is loaded\n");
        return 1;
    }
    *(void **)&e->allocate = dlsym(driver, SYMBOL(cuMemAlloc));
    *(void **)&e->release = dlsym(driver, SYMBOL(cuMemFree));
    *(void **)&e->upload = dlsym(driver, SYMBOL(cuMemcpyHtoD));
    *(void **)&e->download = dlsym(driver, SYMBOL(cuMemcpyDtoH));
    *(void **)&e->synchronize = dlsym(driver, SYMBOL(cuCtxSynchronize));
    if (e->allocate == NULL || e->release == NULL || e->upload == NULL || e->download == NULL ||
        e->synchronize == NULL) {
        fprintf(stderr, "serve: the driver lacks a call\n");
        return 1;
    }
    return 0;
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Operands are a, a_scale, b, b_scale, d: codes, scales that are not powers of two, and NaN for the
 * output. */
static void fill_operand(const hone_operand *o, void *bytes, unsigned *seed)
{
    for (uint64_t i = 0; i < o->bytes && o->dtype == HONE_DTYPE_E4M3; i++) {
        ((unsigned char *)bytes)[i] = numbers[next_random(seed) % 8].code;
    }
    for (uint64_t i = 0; i < o->bytes / 4 && o->dtype == HONE_DTYPE_F32; i++) {
        ((float *)bytes)[i] =
            (o->access & 2) != 0 ? NAN : 0.25f + (float)(next_random(seed) % 64) / 37.0f;
    }
}

static int allocate_operands(engine *e, uint64_t workspace_bytes)
{
    unsigned seed = 12345;
    hone_error error;

    if (hone_operands(&e->problem, e->operands, &e->operands_len, &error) != HONE_OK) {
        return complain("operands", &error);
    }
    for (size_t i = 0; i < e->operands_len; i++) {
        CUdeviceptr address = 0;
        const uint64_t bytes = e->operands[i].bytes;
        e->host[i] = malloc(bytes);
        if (e->host[i] == NULL || e->allocate(&address, bytes) != CUDA_SUCCESS) {
            fprintf(stderr, "serve: no memory for operand %s\n", e->operands[i].name);
            return 1;
        }
        fill_operand(&e->operands[i], e->host[i], &seed);
        e->args[i] = (hone_arg){.address = address, .bytes = bytes};
        e->upload(address, e->host[i], bytes);
    }
    if (workspace_bytes > 0) {
        CUdeviceptr address = 0;
        if (e->allocate(&address, workspace_bytes) != CUDA_SUCCESS) {
            fprintf(stderr, "serve: no memory for the workspace\n");
            return 1;
        }
        e->args[e->operands_len] = (hone_arg){.address = address, .bytes = workspace_bytes};
    }
    return 0;
}

static double value_of(unsigned char code)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].code == code) {
            return numbers[i].value;
        }
    }
    return NAN;
}

/* One element of D in float64, from the quantised operands and their scales. */
static double expected(const engine *e, int64_t row, int64_t column)
{
    const hone_fp8_gemm *g = &e->problem.as.fp8_gemm;
    const unsigned char *a = e->host[0], *b = e->host[2];
    const float *a_scale = e->host[1], *b_scale = e->host[3];
    const int64_t a_groups = (g->k + g->recipe.a.gran_k - 1) / g->recipe.a.gran_k;
    const int64_t b_groups = (g->k + g->recipe.b.gran_k - 1) / g->recipe.b.gran_k;
    double sum = 0;

    for (int64_t k = 0; k < g->k; k++) {
        const double sa = a_scale[row / g->recipe.a.gran_mn * a_groups + k / g->recipe.a.gran_k];
        const double sb = b_scale[column / g->recipe.b.gran_mn * b_groups + k / g->recipe.b.gran_k];
        sum += value_of(a[row * g->k + k]) * sa * value_of(b[column * g->k + k]) * sb;
    }
    return sum;
}

/* Similarity of the whole output: 1 - 2 sum(xy) / sum(x^2 + y^2). */
static int check_output(engine *e)
{
    const hone_fp8_gemm *g = &e->problem.as.fp8_gemm;
    const size_t d = e->operands_len - 1;
    float *got = e->host[d];
    double cross = 0, squares = 0;

    if (e->synchronize() != CUDA_SUCCESS ||
        e->download(got, e->args[d].address, e->operands[d].bytes) != CUDA_SUCCESS) {
        fprintf(stderr, "serve: the kernel faulted\n");
        return 1;
    }
    for (int64_t row = 0; row < g->m; row++) {
        for (int64_t column = 0; column < g->n; column++) {
            const double want = expected(e, row, column), have = (double)got[row * g->n + column];
            cross += want * have;
            squares += want * want + have * have;
        }
    }
    const double difference = 1 - 2 * cross / squares;
    printf("difference from float64: %.3g\n", difference);
    return difference <= 1e-6 ? 0 : 1; /* a NaN fails too */
}

static int serve(engine *e, const char *store, const char *device, const char *text)
{
    static const char *const provenances[] = {"?", "exact", "bucket", "near", "default"};
    const hone_options options = {.size = sizeof options, .allow_modelled = 1};
    hone_choice choice;
    hone_error error;

    if (hone_problem_parse(text, &e->problem, &error) != HONE_OK) {
        return complain("problem", &error);
    }
    const hone_fp8_gemm *g = &e->problem.as.fp8_gemm;
    if (e->problem.op != HONE_OP_FP8_GEMM || g->out != HONE_DTYPE_F32 ||
        g->recipe.a.scale != HONE_DTYPE_F32 || g->batch != 1 ||
        g->a_scale_layout != HONE_SCALES_ROW || g->b_scale_layout != HONE_SCALES_ROW) {
        fprintf(stderr, "serve: the example checks fp8_gemm with batch=1, f32 out and f32 scales "
                        "in row layout only\n");
        return 2;
    }
    if (hone_open(store, device, &options, &e->runtime, &error) != HONE_OK) {
        return complain("open", &error);
    }
    /* Before serving: everything that may compile. */
    if (hone_prepare(e->runtime, &e->problem, 1, NULL, NULL, &error) != HONE_OK) {
        return complain("prepare", &error);
    }
    /* While serving: tens of nanoseconds. */
    if (hone_lookup(e->runtime, &e->problem, &choice, &error) != HONE_OK) {
        return complain("lookup", &error);
    }
    printf("served: %s, winner %llu, %.0f ns %s\n", provenances[choice.provenance],
           (unsigned long long)choice.winner, choice.time_ns,
           choice.time_ns <= 0 ? "unknown"
           : choice.modelled   ? "modelled"
                               : "measured");
    if (find_driver(e) != 0 || allocate_operands(e, choice.workspace_bytes) != 0) {
        return 1;
    }
    const size_t args_len = e->operands_len + (choice.workspace_bytes > 0);
    if (hone_launch(&choice, e->args, args_len, NULL, &error) != HONE_OK) {
        return complain("launch", &error);
    }
    return check_output(e);
}

int main(int argc, char **argv)
{
    engine e = {.runtime = NULL};

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "Usage: serve STORE DEVICE [PROBLEM]\n");
        return 2;
    }
    const int result = serve(&e, argv[1], argv[2], argc == 4 ? argv[3] : STANDARD_PROBLEM);
    for (size_t i = 0; i <= HONE_MAX_OPERANDS; i++) {
        if (e.args[i].address != 0) {
            e.release(e.args[i].address);
        }
        free(e.host[i]);
    }
    hone_close(e.runtime);
    return result;
}
