/* nvrtc_open.c - finds NVRTC: in named folders first, then by the loader, then in a toolkit's usual
 * places. */
#include "runtime/worker/nvrtc.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/* Below a toolkit, or below a folder that the vendor's wheels were unpacked into. */
static const char *const library_folders[] = {
    "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", ".",
};

static const char *const root_variables[] = {"HONE_CUDA_PATH", "CUDA_HOME", "CUDA_PATH"};
static const char *const usual_roots[] = {"/usr/local/cuda", "/opt/cuda",
                                          "/usr/lib/x86_64-linux-gnu", "/usr/local/cuda-13",
                                          "/usr/local/cuda-12"};

static const struct {
    const char *symbol;
    size_t offset;
} slots[] = {
#define X(name) {#name, offsetof(nvrtc, name)},
    NVRTC_CALLS(X)
#undef X
};

static void *open_below(const char *root)
{
    char path[512];

    for (size_t f = 0; f < ARRAY_LEN(library_folders); f++) {
        for (size_t n = 0; n < ARRAY_LEN(library_names); n++) {
            int len =
                snprintf(path, sizeof path, "%s/%s/%s", root, library_folders[f], library_names[n]);
            void *library = len < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
            if (library != NULL) {
                return library;
            }
        }
    }
    return NULL;
}

static void *open_library(void)
{
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < ARRAY_LEN(root_variables); i++) {
        const char *root = getenv(root_variables[i]);
        library = root != NULL && root[0] == '/' ? open_below(root) : NULL;
    }
    for (size_t i = 0; library == NULL && i < ARRAY_LEN(library_names); i++) {
        library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; library == NULL && i < ARRAY_LEN(usual_roots); i++) {
        library = open_below(usual_roots[i]);
    }
    return library;
}

typedef struct build_search {
    ElfW(Addr) base;
    char *hex; /* 96 bytes; "" until found */
} build_search;

/* The GNU build id among one segment of notes. */
static void read_notes(const uint8_t *notes, size_t len, char *hex)
{
    size_t at = 0;

    while (len - at >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)(notes + at);
        size_t name = (note->n_namesz + 3u) & ~(size_t)3, body = at + sizeof *note + name;
        if (body > len || note->n_descsz > len - body) {
            return;
        }
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= 40) {
            for (size_t i = 0; i < note->n_descsz; i++) {
                snprintf(hex + 2 * i, 3, "%02x", notes[body + i]);
            }
            return;
        }
        at = body + ((note->n_descsz + 3u) & ~(size_t)3);
    }
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
    build_search *search = context;

    (void)size;
    if (info->dlpi_addr != search->base) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE && search->hex[0] == '\0') {
            read_notes((const void *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz,
                       search->hex);
        }
    }
    return 1;
}

/* Where the library lies and what it is: two libraries of one version may still differ. */
static void identify(void *library, nvrtc *n)
{
    struct link_map *map = NULL;
    struct stat file = {0};
    char real[4096];

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || realpath(map->l_name, real) == NULL) {
        return;
    }
    snprintf(n->path, sizeof n->path, "%.255s", real);
    char *slash = strrchr(real, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    snprintf(n->folder, sizeof n->folder, "%.255s", real);
    build_search search = {.base = map->l_addr, .hex = n->build};
    dl_iterate_phdr(visit_object, &search);
    if (n->build[0] == '\0' && stat(n->path, &file) == 0) {
        snprintf(n->build, sizeof n->build, "size-%lld-time-%lld", (long long)file.st_size,
                 (long long)file.st_mtime);
    }
}

/* NVRTC opens its builtins by bare name at the first compile. Opened here by path, they are found
 * even when the folder is not on the loader's path, and before files are locked away. */
static void open_builtins(const nvrtc *n)
{
    char path[320];

    snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.%d.%d", n->folder, n->version / 1000,
             n->version % 1000 / 10);
    dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

bool nvrtc_open(nvrtc *out, char *why)
{
    nvrtc n = {.version = 0};
    int major = 0, minor = 0;
    void *library = open_library();

    if (library == NULL) {
        snprintf(why, 256,
                 "NVRTC (libnvrtc.so.13 or .12) is not found; install a CUDA toolkit >= 12.9 and "
                 "name its folder in CUDA_HOME or HONE_CUDA_PATH");
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        void *entry = dlsym(library, slots[i].symbol);
        if (entry == NULL) {
            snprintf(why, 256, "NVRTC lacks %s: a toolkit >= 12.9 is needed", slots[i].symbol);
            return false;
        }
        memcpy((char *)&n + slots[i].offset, &entry, sizeof entry);
    }
    if (n.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) {
        snprintf(why, 256, "nvrtcVersion failed");
        return false;
    }
    n.version = major * 1000 + minor * 10;
    identify(library, &n);
    open_builtins(&n);
    *out = n;
    return true;
}
