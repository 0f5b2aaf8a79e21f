/* record_id.c - a record as one number that writer and reader of a cache share, and the comparison
 * that says what differs. */
#include "core/problem.h"

#include <inttypes.h>
#include <stdio.h>

/* From the lowest bit: format 16, layout 8, rule 8, version 8, page size over 32 8, mark 16. */
#define MARK UINT64_C(0x4b56)

enum { LAYOUT_AT = 16, RULE_AT = 24, VERSION_AT = 32, PAGE_AT = 40, MARK_AT = 48, PAGE_UNIT = 32 };

hone_status hone_record_id(const hone_record *record, int32_t page_size, uint64_t *id,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout;

    if (record == NULL || id == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "record and id must not be NULL");
    }
    TRY(record_layout_of(record, page_size, &layout, error)); /* which bounds each part */
    *id = (uint64_t)record->format | (uint64_t)record->layout << LAYOUT_AT |
          (uint64_t)record->rule << RULE_AT | (uint64_t)record->version << VERSION_AT |
          (uint64_t)(page_size / PAGE_UNIT) << PAGE_AT | MARK << MARK_AT;
done:
    return status;
}

static int32_t part(uint64_t id, int at, int bits)
{
    return (int32_t)(id >> at & ((UINT64_C(1) << bits) - 1));
}

static hone_record record_of(uint64_t id)
{
    return (hone_record){part(id, 0, 16), part(id, LAYOUT_AT, 8), part(id, RULE_AT, 8),
                         part(id, VERSION_AT, 8)};
}

static int32_t page_size_of(uint64_t id)
{
    return part(id, PAGE_AT, 8) * PAGE_UNIT;
}

/* One that hone_record_id could have given. */
static hone_status check_id(uint64_t id, const char *whose, hone_error *error)
{
    const hone_record record = record_of(id);
    hone_error why = {0};
    uint64_t again = 0;

    if (id >> MARK_AT != MARK) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%s id 0x%016" PRIx64 " is not one of hone_record_id", whose, id);
    }
    if (hone_record_id(&record, page_size_of(id), &again, &why) != HONE_OK || again != id) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "%s id 0x%016" PRIx64 ": %s", whose,
                          id, why.message);
    }
    return HONE_OK;
}

hone_status hone_record_match(uint64_t written, uint64_t read, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_record a = record_of(written), b = record_of(read);
    const struct {
        const char *name;
        bool differs;
    } parts[] = {
        {"record_format", a.format != b.format},
        {"record_layout", a.layout != b.layout},
        {"record_rule", a.rule != b.rule},
        {"record_version", a.version != b.version},
        {"page_size", page_size_of(written) != page_size_of(read)},
    };
    char first[64], second[64], names[80] = "";

    TRY(check_id(written, "the writer's", error));
    TRY(check_id(read, "the reader's", error));
    if (written == read) {
        return HONE_OK;
    }
    for (size_t i = 0, used = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].differs) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used > 0 ? ", " : "", parts[i].name);
        }
    }
    problem_record_format(&a, first);
    problem_record_format(&b, second);
    status = status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                        "the cache was written as %s in pages of %d and would be read as %s in "
                        "pages of %d: %s differ; convert it or ask for the record it has",
                        first, page_size_of(written), second, page_size_of(read), names);
done:
    return status;
}
