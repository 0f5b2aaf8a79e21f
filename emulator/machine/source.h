/* source.h - where in the CUDA source an instruction comes from, as the PTX says (-lineinfo). */
#ifndef HONE_EMULATOR_SOURCE_H
#define HONE_EMULATOR_SOURCE_H

#include "emulator/emulator.h"
#include "emulator/ptx/ptx.h"

/* A module's .file directives. */
typedef struct source_file {
    uint32_t number;
    char *path;
} source_file;
typedef struct source_files {
    source_file *list;
    uint32_t len;
} source_files;
void source_files_free(source_files *f);
/* The path of a number, "" for one that no directive names. Lives as long as the files. */
const char *source_path(const source_files *f, uint32_t number);

struct instruction;
/* The place of one of the kernel's instructions; never NULL, all zeros when the PTX does not say.
 */
const ptx_place *source_place(const ptx_kernel *k, const struct instruction *i);
/* Its PTX line and CUDA place into a fault. */
void source_fill_fault(const ptx_kernel *k, const struct instruction *i, hone_emu_fault *f);

#endif
