/* problem_file.h - a file of problems: what a model does not name, and what serving asked for and
 * did not find.
 *
 * Text of at most 16 MiB. A line is a problem (hone_problem_parse), or a count, blanks and a
 * problem; what follows a '#' at its start is a comment. Counts of equal problems are added. */
#ifndef HONE_CLI_PROBLEM_FILE_H
#define HONE_CLI_PROBLEM_FILE_H

#include "models/shapes.h"

#define PROBLEM_FILE_BYTES (16u << 20)
#define PROBLEM_FILE_MOST  100000 /* lines with a problem */

/* Those asked for most first, equal ones in the file's order; `launches` is the count. HONE_IO,
 * HONE_LIMIT; HONE_BAD_TEXT and HONE_BAD_PROBLEM name file and line, and so does HONE_BAD_ARGUMENT,
 * of a file without a problem. Caller frees *out with free(). */
hone_status problem_file_read(const char *path, llm_problem **out, size_t *count,
                              hone_error *error);

#endif
