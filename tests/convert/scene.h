/* scene.h - a folder for one test of conversions, and a conversion in it. */
#ifndef HONE_TESTS_CONVERT_SCENE_H
#define HONE_TESTS_CONVERT_SCENE_H

#include "convert/convert.h"

enum { SCENE_ROWS = 16 };

/* 128x128, e8m0 scales, MXFP4 folded, nothing requantised. */
extern const plan_wishes scene_wishes;
/* Of the last conversion: its report (items are gone by then) and its error. */
extern convert_row scene_rows[SCENE_ROWS];
extern hone_error scene_error;

/* Check's fixture: an empty folder, removed with all that is in it. */
void scene_begin(void);
void scene_end(void);
/* A path in the folder; the last four stay valid. */
const char *scene_path(const char *name);
/* Files and folders in it, hidden ones too. */
int scene_files(void);
/* Open a checkpoint of the folder, plan and convert it. `converted`: tensors of the report. */
hone_status scene_convert(const char *in, const char *out, const plan_wishes *wishes,
                          unsigned threads, size_t *converted);
/* Open a file of the folder; the test fails when that fails. */
safetensors_file *scene_open(const char *name);

#endif
