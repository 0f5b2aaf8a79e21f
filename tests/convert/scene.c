/* scene.c - see scene.h. */
#include "tests/convert/scene.h"

#include "tests/support/folder.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

const plan_wishes scene_wishes = {.block_rows = 128,
                                  .block_cols = 128,
                                  .scales = SAFETENSORS_F8_E8M0,
                                  .rule = PLAN_CEIL,
                                  .fold = true};
convert_row scene_rows[SCENE_ROWS];
hone_error scene_error;

static char folder[FOLDER_BYTES];

void scene_begin(void)
{
    folder_make(folder);
    scene_error = (hone_error){0};
}

void scene_end(void)
{
    folder_remove(folder);
}

const char *scene_path(const char *name)
{
    static char paths[4][FOLDER_BYTES + 64];
    static int at;

    at = (at + 1) % 4;
    snprintf(paths[at], sizeof paths[at], "%s/%s", folder, name);
    return paths[at];
}

int scene_files(void)
{
    DIR *d = opendir(folder);
    int count = -2; /* . and .. */

    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

hone_status scene_convert(const char *in, const char *out, const plan_wishes *wishes,
                          unsigned threads, size_t *converted)
{
    hone_status status = HONE_OK;
    checkpoint *from = NULL;
    plan p = {0};
    const convert_options options = {.threads = threads};

    memset(scene_rows, 0, sizeof scene_rows);
    TRY(checkpoint_open(scene_path(in), &from, &scene_error));
    TRY(plan_make(from, wishes, &p, &scene_error));
    ck_assert_uint_le(p.rows, SCENE_ROWS);
    *converted = p.rows;
    TRY(convert_run(&p, scene_path(out), &options, scene_rows, &scene_error));
done:
    for (size_t i = 0; i < p.rows; i++) {
        scene_rows[i].item = NULL;
    }
    plan_free(&p);
    checkpoint_close(from);
    return status;
}

safetensors_file *scene_open(const char *name)
{
    safetensors_file *file = NULL;

    ck_assert_msg(safetensors_open(scene_path(name), &file, &scene_error) == HONE_OK, "%s",
                  scene_error.message);
    return file;
}
