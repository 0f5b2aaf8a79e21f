/* injected.c - kernels that fail as HONE_EMU_FAULTS asks: what a tuner must survive and no kernel's
 * text can do to an emulator.
 *
 * "abort=NAME;hang=NAME;...", NAME the kernel's entry in the PTX, in full. The same text holds for
 * every device of the process. */
#include "emulator/driver/shim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum injected {
    NONE,
    ABORT,     /* the process dies, as a driver that asserts */
    HANG,      /* the launch never returns */
    ILLEGAL,   /* an illegal address: the context is lost */
    WRONG,     /* nothing is computed, and nobody says so */
    NO_MEMORY, /* the launch finds no memory */
    LOST,      /* an uncorrectable error of the memory: the context is lost */
} injected;

static const struct {
    const char *name;
    injected kind;
} kinds[] = {{"abort", ABORT}, {"hang", HANG},        {"illegal", ILLEGAL},
             {"wrong", WRONG}, {"memory", NO_MEMORY}, {"lost", LOST}};

static injected kind_named(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0) {
            return kinds[i].kind;
        }
    }
    return NONE;
}

/* The kind and the kernel of the entry at `text`, and where the next one begins; false for a text
 * of another form. */
static bool read_entry(const char **text, injected *kind, const char **name, size_t *len)
{
    const size_t all = strcspn(*text, ";");
    const char *equals = memchr(*text, '=', all);

    if (equals == NULL) {
        return false;
    }
    *kind = kind_named(*text, (size_t)(equals - *text));
    *name = equals + 1;
    *len = all - (size_t)(equals + 1 - *text);
    *text += all + ((*text)[all] == ';');
    return *kind != NONE && *len > 0;
}

bool shim_faults_valid(const char *text)
{
    injected kind;
    const char *name;
    size_t len;

    while (text != NULL && *text != '\0') {
        if (!read_entry(&text, &kind, &name, &len)) {
            return false;
        }
    }
    return true;
}

static injected kind_of(const char *kernel)
{
    const char *text = getenv("HONE_EMU_FAULTS"), *name;
    injected kind;
    size_t len;

    while (text != NULL && *text != '\0' && read_entry(&text, &kind, &name, &len)) {
        if (strlen(kernel) == len && memcmp(kernel, name, len) == 0) {
            return kind;
        }
    }
    return NONE;
}

CUresult shim_fault_of_kernel(const shim_function *f, bool *skip)
{
    shim_device *d = f->head.context->device;

    *skip = false;
    switch (kind_of(f->facts.name)) {
    case ABORT:
        abort();
    case HANG:
        for (;;) {
            pause();
        }
    case ILLEGAL:
        return shim_note(d, CUDA_ERROR_ILLEGAL_ADDRESS, "injected", "an illegal address");
    case LOST:
        return shim_note(d, CUDA_ERROR_ECC_UNCORRECTABLE, "injected", "the device is lost");
    case NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case WRONG:
        *skip = true;
        return CUDA_SUCCESS;
    case NONE:
        break;
    }
    return CUDA_SUCCESS;
}
