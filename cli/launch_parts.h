/* launch_parts.h - pieces of a launch's texts, for the files that read them. */
#ifndef HONE_CLI_LAUNCH_PARTS_H
#define HONE_CLI_LAUNCH_PARTS_H

#include "cli/launch_text.h"

/* What stands up to the next colon; `*rest` moves behind it. */
typedef struct launch_piece {
    const char *at;
    size_t len;
} launch_piece;
launch_piece launch_piece_next(const char **rest);
bool launch_piece_is(launch_piece p, const char *word);
bool launch_piece_number(launch_piece p, uint64_t *out); /* decimal, 0x or 0 octal */
hone_status launch_piece_name(launch_piece p, char out[LAUNCH_NAME], hone_error *error);

/* `rest` is what follows "tmap:" in `text`. */
hone_status launch_map_parse(const char *text, const char *rest, launch_argument *out,
                             hone_error *error);

#endif
