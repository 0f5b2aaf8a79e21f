/* store_names.c - outcomes, timers and verdicts as words, from the tables in store.h. */
#include "cache/store.h"

#include <string.h>

typedef struct word {
    int32_t value;
    const char *name, *text;
} word;

static const word outcomes[] = {
#define X(text, NAME, value, description) {value, #text, description},
    STORE_OUTCOME_MAP(X)
#undef X
};
static const word timers[] = {
#define X(text, NAME, value) {value, #text, NULL},
    STORE_TIMER_MAP(X)
#undef X
};
static const word verdicts[] = {
#define X(text, NAME, value) {value, #text, NULL},
    STORE_VERDICT_MAP(X)
#undef X
};

static const word *find(const word *words, size_t len, int32_t value)
{
    static const word unknown = {0, "?", "?"};

    for (size_t i = 0; i < len; i++) {
        if (words[i].value == value) {
            return &words[i];
        }
    }
    return &unknown;
}

const char *store_outcome_name(int32_t outcome)
{
    return find(outcomes, ARRAY_LEN(outcomes), outcome)->name;
}

const char *store_outcome_text(int32_t outcome)
{
    return find(outcomes, ARRAY_LEN(outcomes), outcome)->text;
}

const char *store_timer_name(int32_t timer)
{
    return find(timers, ARRAY_LEN(timers), timer)->name;
}

const char *store_verdict_name(int32_t verdict)
{
    return find(verdicts, ARRAY_LEN(verdicts), verdict)->name;
}

int32_t store_outcome_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        if (strcmp(outcomes[i].name, name) == 0) {
            return outcomes[i].value;
        }
    }
    return 0;
}
