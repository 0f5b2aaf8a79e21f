/* option_device.c - the kind of a device that a command line names, without opening it. */
#include "cli/options.h"

#include "runtime/device.h"

#include <stdlib.h>
#include <string.h>

hone_status options_device_kind(const char *spec, device_kind *out, hone_error *error)
{
    hone_status status = HONE_OK;
    device_entry *entries = NULL;
    size_t count = 0;
    bool found = false;

    TRY(device_list(NULL, 0, &count, error));
    entries = calloc(count + 1, sizeof *entries);
    if (entries == NULL) {
        return status_set(error, HONE_NO_MEMORY, spec, 0, "%zu devices", count);
    }
    TRY(device_list(entries, count, &count, error));
    for (size_t i = 0; i < count && !found; i++) {
        found = strcmp(entries[i].spec, spec) == 0;
        if (found) {
            device_kind_of(&entries[i].facts, out);
        }
    }
    if (!found) {
        status =
            status_set(error, HONE_UNKNOWN, spec, 0,
                       "no such device; `hone devices` lists them, and without --device all of "
                       "the store's are taken");
    }
done:
    free(entries);
    return status;
}
