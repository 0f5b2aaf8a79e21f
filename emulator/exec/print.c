/* print.c - what kernels say to the host: printf onto stderr, assert into the fault.
 *
 * A launch prints at most 1 MiB, as the device's buffer holds by default; what comes later is lost,
 * and the kernel's printf returns -1. */
#include "emulator/machine/access.h"
#include "emulator/exec/exec.h"

#include <stdio.h>
#include <string.h>

enum { LAUNCH_BYTES = 1 << 20, LINE_BYTES = 4096, TEXT_BYTES = 1024, DIRECTIVE_BYTES = 32 };

/* Bytes at a generic address; false after a fault. */
static bool read_bytes(warp *w, const instruction *i, uint32_t lane, uint64_t at, uint32_t bytes,
                       void *out)
{
    uint64_t address[MACHINE_LANES] = {0};
    access_window win;
    ptx_space space = PTX_GENERIC;

    address[lane] = at;
    if (access_open(w, i, address, UINT32_C(1) << lane, bytes, &space, &win) == 0) {
        return false;
    }
    memcpy(out, win.data + win.at[lane], bytes);
    return true;
}

/* A string at a generic address, cut off at the capacity. */
static bool read_text(warp *w, const instruction *i, uint32_t lane, uint64_t at,
                      char text[TEXT_BYTES])
{
    for (uint32_t n = 0; n < TEXT_BYTES - 1; n++) {
        if (!read_bytes(w, i, lane, at + n, 1, &text[n])) {
            return false;
        }
        if (text[n] == '\0') {
            return true;
        }
    }
    text[TEXT_BYTES - 1] = '\0';
    return true;
}

/* One call while it is put together. */
typedef struct printing {
    warp *w;
    const instruction *i;
    uint32_t lane;
    uint64_t next; /* the next argument: aligned to its size */
    uint32_t taken;
    char text[LINE_BYTES];
    size_t used;
} printing;

static bool take_argument(printing *p, uint32_t bytes, uint64_t *out)
{
    uint64_t value = 0;
    uint32_t low = 0;

    p->next = (p->next + bytes - 1) / bytes * bytes;
    if (!read_bytes(p->w, p->i, p->lane, p->next, bytes, bytes == 8 ? (void *)&value : &low)) {
        return false;
    }
    p->next += bytes;
    p->taken++;
    *out = bytes == 8 ? value : low;
    return true;
}

static void add_text(printing *p, int len)
{
    size_t room = sizeof p->text - 1 - p->used;
    p->used += len > 0 && (size_t)len < room ? (size_t)len : len > 0 ? room : 0;
}

/* %{flags}{width}{.precision}{length}conversion: the part before the length, `*` replaced. */
typedef struct directive {
    char text[DIRECTIVE_BYTES];
    size_t len;
    uint32_t bytes; /* of an integer argument */
    char conversion;
} directive;

static bool take_star(printing *p, directive *d)
{
    uint64_t value = 0;

    if (!take_argument(p, 4, &value)) {
        return false;
    }
    int n = snprintf(d->text + d->len, sizeof d->text - d->len, "%d", (int)value);
    d->len += n > 0 && (size_t)n < sizeof d->text - d->len ? (size_t)n : 0;
    return true;
}

/* From after the % sign; returns what follows, or NULL after a fault. */
static const char *read_directive(printing *p, const char *at, directive *d)
{
    d->text[0] = '%';
    d->len = 1;
    d->bytes = 4;
    while (*at != '\0' && strchr("-+ #0123456789.*", *at) != NULL) {
        if (*at == '*' && !take_star(p, d)) {
            return NULL;
        }
        if (*at != '*' && d->len < sizeof d->text - 8) {
            d->text[d->len++] = *at;
        }
        at++;
    }
    while (*at != '\0' && strchr("hlLqjzt", *at) != NULL) {
        d->bytes = *at == 'h' ? 4 : 8;
        at++;
    }
    d->conversion = *at;
    return *at == '\0' ? at : at + 1;
}

/* Nonliteral formats are made from checked parts only: flags, digits, one known conversion. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool print_number(printing *p, directive *d)
{
    char *to = p->text + p->used;
    size_t room = sizeof p->text - p->used;
    bool is_float = strchr("fFeEgGaA", d->conversion) != NULL;
    uint64_t value = 0;
    double real = 0;

    if (!take_argument(p, is_float || d->conversion == 'p' ? 8 : d->bytes, &value)) {
        return false;
    }
    if (is_float) {
        memcpy(&real, &value, sizeof real);
        snprintf(d->text + d->len, sizeof d->text - d->len, "%c", d->conversion);
        add_text(p, snprintf(to, room, d->text, real));
    } else if (d->conversion == 'p') {
        add_text(p, snprintf(to, room, "%#llx", (unsigned long long)value));
    } else if (d->conversion == 'c') {
        snprintf(d->text + d->len, sizeof d->text - d->len, "c");
        add_text(p, snprintf(to, room, d->text, (int)(value & 255)));
    } else {
        bool is_signed = d->conversion == 'd' || d->conversion == 'i';
        long long wide = is_signed && d->bytes == 4 ? (int32_t)value : (long long)value;
        snprintf(d->text + d->len, sizeof d->text - d->len, "ll%c", d->conversion);
        add_text(p, snprintf(to, room, d->text, wide));
    }
    return true;
}

static bool print_string(printing *p, directive *d)
{
    char text[TEXT_BYTES];
    uint64_t at = 0;

    if (!take_argument(p, 8, &at) || !read_text(p->w, p->i, p->lane, at, text)) {
        return false;
    }
    snprintf(d->text + d->len, sizeof d->text - d->len, "s");
    add_text(p, snprintf(p->text + p->used, sizeof p->text - p->used, d->text, text));
    return true;
}
#pragma GCC diagnostic pop

static bool print_all(printing *p, const char *format)
{
    while (*format != '\0') {
        const char *plain = format + strcspn(format, "%");
        add_text(p, snprintf(p->text + p->used, sizeof p->text - p->used, "%.*s",
                             (int)(plain - format), format));
        format = plain;
        if (*format == '\0') {
            break;
        }
        directive d;
        format = read_directive(p, format + 1, &d);
        bool good = format != NULL;
        if (good && d.conversion == 's') {
            good = print_string(p, &d);
        } else if (good && d.conversion != '\0' && strchr("diouxXcpfFeEgGaA", d.conversion)) {
            good = print_number(p, &d);
        } else if (good && d.conversion == '%') {
            add_text(p, snprintf(p->text + p->used, sizeof p->text - p->used, "%%"));
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

void exec_printf(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t *d = machine_r32(w, i->o[0]);

    if (taint_refuse(w, i, i->o[1], mask, "the format of printf")) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        printing p = {.w = w, .i = i, .lane = lane, .next = machine_r64(w, i->o[2])[lane]};
        char format[TEXT_BYTES];
        if (!read_text(w, i, lane, machine_r64(w, i->o[1])[lane], format) ||
            !print_all(&p, format)) {
            return;
        }
        bool fits = p.used <= LAUNCH_BYTES - w->run->printed;
        if (fits) {
            fwrite(p.text, 1, p.used, stderr);
            w->run->printed += p.used;
        }
        d[lane] = fits ? p.taken : UINT32_MAX;
    }
    if (w->tainted) {
        taint_set(w, i->o[0], 0, mask);
    }
}

/* "file:line: function: message", as far as they can be read. */
void exec_assert(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t lane = machine_lowest(mask);
    char message[TEXT_BYTES] = "", file[TEXT_BYTES] = "", function[TEXT_BYTES] = "";

    if (i->sources == 0) {
        machine_fault(w, i, lane, 0, FAULT_ASSERT, "a device-side assert failed");
        return;
    }
    if (read_text(w, i, lane, machine_r64(w, i->o[0])[lane], message) &&
        read_text(w, i, lane, machine_r64(w, i->o[1])[lane], file) &&
        read_text(w, i, lane, machine_r64(w, i->o[3])[lane], function)) {
        machine_fault(w, i, lane, 0, FAULT_ASSERT, "%.80s:%u: %.60s: assertion `%.80s` failed",
                      file, machine_r32(w, i->o[2])[lane], function, message);
    }
}

void exec_no_function(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t lane = machine_lowest(mask);
    uint64_t address = machine_r64(w, i->o[0])[lane];

    machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                  "a call of %#llx, which is no function of this module",
                  (unsigned long long)address);
}
