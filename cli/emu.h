/* emu.h - parts of `hone emu`: a kernel from a file, its launch on an emulated GPU, and what is
 * reported of it. */
#ifndef HONE_CLI_EMU_H
#define HONE_CLI_EMU_H

#include "cli/launch_text.h"

#include "include/hone_emu.h"
#include "runtime/device.h"
#include "runtime/jit.h"

#include <jansson.h>

enum { EMU_LIST = 16, EMU_SCHEDULES = 64 };

/* What was asked for. Texts are borrowed from argv. */
typedef struct emu_options {
    const char *file, *kernel, *device;
    const char *includes[EMU_LIST];
    size_t includes_len;
    uint32_t grid[3], block[3], cluster[3], shared_bytes;
    launch_argument *memory[LAUNCH_ARGUMENTS]; /* owned: arguments, and buffers that are none */
    size_t memory_len;
    launch_dump dumps[EMU_LIST];
    size_t dumps_len;
    launch_output outputs[EMU_LIST];
    size_t outputs_len;
    uint64_t sample; /* CTAs to run; 0: all */
    uint64_t seed;
    int arithmetic, checks, timing, threads, schedules; /* timing -1: of check, both */
    int rows;                                           /* of the table of lines */
    bool json;
} emu_options;
void emu_options_free(emu_options *o);

/* A kernel as PTX, with the text that it was written in. */
typedef struct emu_code {
    char *text; /* of the file */
    bool is_cuda;
    char *ptx;
    char *entry;       /* the kernel's name in the PTX */
    jit_kernel report; /* ptxas' figures; registers 0 when the file is PTX. Its texts are NULL */
} emu_code;
/* Read and, where it is CUDA, compile for `arch` with line information. */
hone_status emu_code_open(const emu_options *o, int32_t arch, emu_code *out, hone_error *error);
void emu_code_close(emu_code *c);

/* The name of a kernel when the file has just one, or the one that `wanted` is part of; else
 * HONE_BAD_ARGUMENT lists them. emu_entry.c. */
hone_status emu_entry_of_cuda(const char *file, const char *text, char **out, hone_error *error);
hone_status emu_entry_of_ptx(const char *file, const char *ptx, const char *wanted, char **out,
                             hone_error *error);

/* Headers that a CUDA file includes, and theirs: emu_include.c. */
typedef struct emu_headers {
    char **names;
    char **texts;
    char **paths; /* "" for one that is built in */
    size_t len, capacity;
} emu_headers;
hone_status emu_headers_collect(const emu_options *o, const char *text, emu_headers *out,
                                hone_error *error);
void emu_headers_free(emu_headers *h);
/* A whole file as text, ended by NUL. HONE_IO, HONE_LIMIT. */
hone_status emu_read_file(const char *path, char **out, size_t *len, hone_error *error);

/* A buffer's bytes before a launch, owned by the caller; NULL for one that nobody writes. */
hone_status emu_content(const launch_argument *a, uint8_t **out, hone_error *error);

/* The kernel on a device, with its memory. */
typedef struct emu_session {
    const emu_options *o;
    device *device;
    CUmodule module;
    CUfunction function;
    CUdeviceptr address[LAUNCH_ARGUMENTS];
    uint8_t *content[LAUNCH_ARGUMENTS]; /* before the launch; NULL: not written */
    CUevent begin, end;
    hone_emu_fault fault; /* of the last launch; result 0: none */
    char *places;         /* of its deadlock or hang, a line for each; NULL: none */
    double modelled_ns;
} emu_session;
hone_status emu_session_open(const emu_options *o, device *d, const emu_code *c, emu_session *out,
                             hone_error *error);
void emu_session_close(emu_session *s);
/* One launch from fresh memory. A kernel's fault is no error: *fine tells, and s->fault says
 * which. */
hone_status emu_session_launch(emu_session *s, uint64_t seed, int timing, bool *fine,
                               hone_error *error);
/* A buffer's bytes now; `which` counts o->memory. Caller frees. */
hone_status emu_session_read(const emu_session *s, size_t which, uint8_t **out, hone_error *error);
/* The buffer of that name. */
hone_status emu_session_find(const emu_session *s, const char *name, size_t *which,
                             hone_error *error);

/* Reports: text on stdout, or members of `root` when that is not NULL. */
void emu_report_fault(const emu_session *s, const emu_code *c, json_t *root);
hone_status emu_report_outputs(const emu_session *s, json_t *root, hone_error *error);
hone_status emu_report_launch(const emu_session *s, const emu_code *c, json_t *root,
                              hone_error *error);
/* Counters with their errors, and the lines by cost. emu_profile.c. */
hone_status emu_report_profile(const emu_session *s, const emu_code *c, json_t *root,
                               hone_error *error);

/* The kernel under o->schedules orders of its warps and both timings. emu_check.c. */
hone_status emu_check(emu_session *s, const emu_code *c, json_t *root, bool *good,
                      hone_error *error);

/* A line of a text without its newline; len 0 and NULL behind the end. Lines count from 1. */
const char *emu_line(const char *text, int line, size_t *len);
/* Lines around one, marked. */
void emu_print_around(const char *text, int line, int around);
/* Whether a path that the PTX names is the session's own file. */
bool emu_is_file(const emu_options *o, const char *path);

#endif
