/* holes.h - safetensors files that are large and take no room: their data are holes, zeros. */
#ifndef HONE_TESTS_CLI_HOLES_H
#define HONE_TESTS_CLI_HOLES_H

#include "tests/cli/program.h"

#include <stdint.h>

/* A path in the folder that programs run in; the last two stay valid. */
const char *holes_path(const place *p, const char *name);
/* A file of a header and `bytes` bytes of data; returns it open. */
int holes_make(const place *p, const char *name, const char *header, uint64_t bytes);
/* A file of one MXFP4 weight [rows, 8192]. */
void holes_mxfp4(const place *p, const char *name, uint64_t rows);

#endif
