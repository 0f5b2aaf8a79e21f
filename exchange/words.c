/* words.c - outcomes and moments as other tuners' files spell them. */
#include "exchange/exchange_parts.h"

#include <string.h>
#include <time.h>

/* Cachefiles have three names for failures, T4 files five; a name that several outcomes share
 * stands for the first of them where nothing more is known. */
static const struct {
    int32_t outcome;
    const char *cachefile, *t4;
} words[] = {
    {STORE_OK, "ok", "correct"},
    {STORE_COMPILE, "CompilationFailedConfig", "compile"},
    {STORE_FAULT, "RuntimeFailedConfig", "runtime"},
    {STORE_LAUNCH, "RuntimeFailedConfig", "runtime"},
    {STORE_OOM, "RuntimeFailedConfig", "runtime"},
    {STORE_LOST, "RuntimeFailedConfig", "runtime"},
    {STORE_UNMEASURED, "RuntimeFailedConfig", "runtime"},
    {STORE_HANG, "RuntimeFailedConfig", "timeout"},
    {STORE_WRONG, "RuntimeFailedConfig", "correctness"},
    {STORE_NONDET, "RuntimeFailedConfig", "correctness"},
    {STORE_PRUNED, "InvalidConfig", "constraints"},
};

static const char *word_of(exchange_format format, size_t row)
{
    return format == EXCHANGE_T4 ? words[row].t4 : words[row].cachefile;
}

const char *exchange_word(exchange_format format, int32_t outcome)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (words[i].outcome == outcome) {
            return word_of(format, i);
        }
    }
    return "";
}

int32_t exchange_outcome(exchange_format format, const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(word_of(format, i), word) == 0) {
            return words[i].outcome;
        }
    }
    return 0;
}

void exchange_time_text(int64_t ms, char text[32])
{
    const time_t seconds = (time_t)(ms / 1000);
    struct tm parts = {0};

    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, 32, "%Y-%m-%d %H:%M:%S+00:00", &parts) == 0) {
        snprintf(text, 32, "1970-01-01 00:00:00+00:00");
    }
}

/* Fractions of a second and zones are dropped: the moment is for people. */
int64_t exchange_time_read(const char *text)
{
    struct tm parts = {0};

    if (text == NULL || strptime(text, "%Y-%m-%d %H:%M:%S", &parts) == NULL) {
        return 0;
    }
    const time_t seconds = timegm(&parts);
    return seconds > 0 ? (int64_t)seconds * 1000 : 0;
}
