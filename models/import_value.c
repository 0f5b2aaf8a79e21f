/* import_value.c - typed look-ups in a config.json, with the key in every refusal. */
#include "models/import.h"

const json_t *import_find(const import_config *c, const char *key)
{
    const json_t *value = json_object_get(c->text, key);

    return json_is_null(value) ? NULL : value;
}

hone_status import_number(import_config *c, const json_t *value, const char *key, int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > IMPORT_MAX_NUMBER) {
        return IMPORT_FAIL(c, "'%s' must be an integer from 0 to %d", key, IMPORT_MAX_NUMBER);
    }
    *out = json_integer_value(value);
    return HONE_OK;
}

hone_status import_take(import_config *c, const char *key, int64_t *out)
{
    const json_t *value = import_find(c, key);

    return value == NULL ? HONE_OK : import_number(c, value, key, out);
}

hone_status import_need(import_config *c, const char *key, int64_t *out)
{
    if (import_find(c, key) == NULL) {
        return IMPORT_FAIL(c, "'%s' is missing: model_type %s needs it", key, c->family);
    }
    return import_take(c, key, out);
}

hone_status import_need_all(import_config *c, const import_key *keys, size_t len)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < len && status == HONE_OK; i++) {
        status = import_need(c, keys[i].key, (int64_t *)((char *)c->l + keys[i].offset));
    }
    return status;
}

hone_status import_take_any(import_config *c, const char *const *keys, int64_t *out)
{
    for (size_t i = 0; keys[i] != NULL; i++) {
        if (import_find(c, keys[i]) != NULL) {
            return import_take(c, keys[i], out);
        }
    }
    return HONE_OK;
}

hone_status import_need_array(import_config *c, const char *key, size_t least, const json_t **out)
{
    const json_t *value = import_find(c, key);

    if (!json_is_array(value) || json_array_size(value) < least) {
        return IMPORT_FAIL(c, "'%s' must be a list of at least %zu: model_type %s needs it", key,
                           least, c->family);
    }
    *out = value;
    return HONE_OK;
}

const char *import_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}
