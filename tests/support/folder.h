/* folder.h - a temporary folder of one test's or benchmark's own. */
#ifndef HONE_TESTS_SUPPORT_FOLDER_H
#define HONE_TESTS_SUPPORT_FOLDER_H

enum { FOLDER_BYTES = 512 }; /* leaves room for file names in paths of 1,024 */

/* Make a folder below $TMPDIR, else /tmp, that only this user may enter, and write its path. The
 * process ends when it cannot. */
void folder_make(char path[FOLDER_BYTES]);

/* Remove a folder with all that is in it; the process ends when something stays. */
void folder_remove(const char *path);

#endif
