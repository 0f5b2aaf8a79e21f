/* device_check.c - hone-device-check: asks a device what no manual says, and what the products'
 * kernels give, and compares two devices' answers.
 *
 *   hone-device-check ask SPEC FOLDER [PROBE...]   writes FOLDER/PROBE.golden; all: and products
 *   hone-device-check compare FOLDER FOLDER        exit 1 when bits differ that should not */
#include "tests/device/probe.h"
#include "tests/device/products.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int tell(const hone_error *error)
{
    fprintf(stderr, "hone-device-check: %s\n", error->message);
    return 3;
}

static bool chosen(const probe *p, char *const *names, int len)
{
    for (int n = 0; n < len; n++) {
        if (strcmp(names[n], p->name) == 0) {
            return true;
        }
    }
    return len == 0;
}

static hone_status ask_one(const probe *p, const device *d, const char *folder, hone_error *error)
{
    golden g = {0};
    hone_status status = probe_ask(p, d, &g, error);

    if (status == HONE_OK) {
        status = golden_write(&g, folder, error);
    }
    golden_free(&g);
    return status;
}

static hone_status ask_product(const product *p, const device *d, const char *folder, bool *serves,
                               hone_error *error)
{
    golden g = {0};
    hone_status status = product_is_for(p, d, serves, error);

    if (status == HONE_OK && *serves) {
        status = product_ask(p, d, false, &g, error);
    }
    if (status == HONE_OK && *serves) {
        status = golden_write(&g, folder, error);
    }
    golden_free(&g);
    return status;
}

static int ask_products(const device *d, const char *folder)
{
    int failed = 0;

    for (size_t n = 0; n < products_len; n++) {
        hone_error error = {0};
        bool serves = false;
        const hone_status status = ask_product(&products[n], d, folder, &serves, &error);
        printf("%-15s %s\n", products[n].name,
               status != HONE_OK ? error.message
               : serves          ? "asked"
                                 : "is of another arch");
        failed += status != HONE_OK;
    }
    return failed;
}

static int ask(const char *spec, const char *folder, char *const *names, int len)
{
    hone_error error = {0};
    device *d = NULL;
    int failed = 0;

    for (int n = 0; n < len; n++) {
        if (probe_find(names[n]) == NULL) {
            fprintf(stderr, "hone-device-check: no probe \"%s\"\n", names[n]);
            return 2;
        }
    }
    if (device_open(spec, &d, &error) != HONE_OK) {
        return tell(&error);
    }
    for (size_t n = 0; n < probes_len; n++) {
        if (!chosen(&probes[n], names, len)) {
            continue;
        }
        if (!probe_is_for(&probes[n], d) && len == 0) {
            printf("%-12s asks about sm_%d alone\n", probes[n].name, (int)probes[n].arch);
            continue;
        }
        hone_status status = ask_one(&probes[n], d, folder, &error);
        printf("%-12s %s\n", probes[n].name, status == HONE_OK ? "asked" : error.message);
        failed += status != HONE_OK;
    }
    failed += len == 0 ? ask_products(d, folder) : 0;
    device_close(d);
    return failed > 0;
}

static bool answered(const char *name, const char *folder)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s.golden", folder, name);
    return access(path, F_OK) == 0;
}

/* One line; true when the two agree as far as they should. */
static bool compare_one(const char *name, bool approximate, const char *a, const char *b)
{
    golden x = {0}, y = {0};
    golden_difference d = {0};
    hone_error error = {0};
    bool good = false;

    if (golden_read(a, name, &x, &error) != HONE_OK ||
        golden_read(b, name, &y, &error) != HONE_OK ||
        golden_compare(&x, &y, &d, &error) != HONE_OK) {
        printf("%-15s %s\n", name, error.message);
        goto done;
    }
    good = d.differing == 0 || approximate;
    printf("%-15s %8" PRIu64 " words, %" PRIu64 " differ", name, d.words, d.differing);
    if (d.differing > 0) {
        printf("; the first in case %" PRIu64 ", word %" PRIu64 ": %08x, %08x",
               d.first / x.out_each, d.first % x.out_each, x.out[d.first], y.out[d.first]);
    }
    if (d.differing > 0 && d.ulps != UINT64_MAX) {
        printf("; as fp32 at most %" PRIu64 " ulp apart", d.ulps);
    }
    puts(approximate ? " (no bits are promised)" : "");
done:
    golden_free(&x);
    golden_free(&y);
    return good;
}

static int compare(const char *a, const char *b)
{
    bool good = true;

    for (size_t n = 0; n < probes_len; n++) {
        if (probes[n].arch != 0 && !answered(probes[n].name, a) && !answered(probes[n].name, b)) {
            printf("%-12s of sm_%d: neither was asked\n", probes[n].name, (int)probes[n].arch);
            continue;
        }
        good = compare_one(probes[n].name, probes[n].approximate, a, b) && good;
    }
    for (size_t n = 0; n < products_len; n++) {
        if (answered(products[n].name, a) || answered(products[n].name, b)) {
            good = compare_one(products[n].name, false, a, b) && good;
        }
    }
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "ask") == 0) {
        return ask(argv[2], argv[3], argv + 4, argc - 4);
    }
    if (argc == 4 && strcmp(argv[1], "compare") == 0) {
        return compare(argv[2], argv[3]);
    }
    fprintf(stderr,
            "usage: hone-device-check ask SPEC FOLDER [PROBE...] | compare FOLDER FOLDER\n");
    return 2;
}
