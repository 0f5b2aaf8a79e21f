/* import.c - reads a Hugging Face config.json into an architecture.
 *
 * The same word means different things in different families (shapes.md 1); what is not understood
 * is an error that names it, never a guess. */
#include "models/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shapes that only some layers have, or that lie in another width, would come out tidy and wrong.
 */
static hone_status refuse_unmodelled(import_config *c)
{
    hone_status status = HONE_OK;
    int64_t every = 1, step = 1;

    TRY(import_take(c, "moe_layer_freq", &every));
    TRY(import_take(c, "decoder_sparse_step", &step));
    if (every != 1 || step != 1 || json_array_size(import_find(c, "mlp_only_layers")) > 0) {
        return IMPORT_FAIL(c, "experts in only some layers (moe_layer_freq, decoder_sparse_step, "
                              "mlp_only_layers) are not modelled");
    }
    if (import_find(c, "routed_expert_hidden_size") != NULL) {
        return IMPORT_FAIL(
            c, "'routed_expert_hidden_size': experts in a latent width are not modelled");
    }
done:
    return status;
}

static hone_status read_sizes(import_config *c)
{
    static const import_key keys[] = {
        {"hidden_size", offsetof(llm, hidden)},
        {"num_hidden_layers", offsetof(llm, layers)},
        {"vocab_size", offsetof(llm, vocab)},
        {"num_attention_heads", offsetof(llm, heads)},
    };
    hone_status status = import_need_all(c, keys, ARRAY_LEN(keys));

    if (status == HONE_OK && c->l->heads == 0) {
        return IMPORT_FAIL(c, "'num_attention_heads' must be at least 1");
    }
    c->l->tied = json_is_true(import_find(c, "tie_word_embeddings"));
    return status;
}

/* intermediate_size is the dense layers' where there are any, the experts' where no other key gives
 * theirs, and unused in a model like Qwen3 MoE. */
static hone_status read_feed_forward(import_config *c)
{
    static const char *const experts[] = {"n_routed_experts", "num_experts", "num_local_experts",
                                          NULL};
    static const char *const topk[] = {"num_experts_per_tok", "experts_per_token",
                                       "num_experts_per_token", NULL};
    static const char *const shared[] = {"n_shared_experts", "num_shared_experts", NULL};
    static const char *const moe_inter[] = {"moe_intermediate_size", "intermediate_size", NULL};
    static const char *const dense_inter[] = {"intermediate_size_mlp", "intermediate_size", NULL};
    hone_status status = HONE_OK;
    llm *l = c->l;
    int64_t count = 0;

    TRY(refuse_unmodelled(c));
    TRY(import_take_any(c, experts, &l->experts));
    l->dense_layers = l->layers;
    if (l->experts > 0) {
        l->dense_layers = 0;
        TRY(import_take(c, "first_k_dense_replace", &l->dense_layers));
        TRY(import_take_any(c, topk, &l->topk));
        TRY(import_take_any(c, moe_inter, &l->moe_inter));
        TRY(import_take_any(c, shared, &count));
        l->shared_inter = count * l->moe_inter;
        TRY(import_take(c, "shared_expert_intermediate_size", &l->shared_inter));
    }
    if (l->dense_layers > 0) {
        TRY(import_take_any(c, dense_inter, &l->dense_inter));
    }
done:
    return status;
}

/* Whether a module that the checkpoint leaves unquantised is one that we would call quantised.
 * Gates, norms and embeddings are bf16 anyway, and layers past the last are draft stages. */
static bool is_ours(const import_config *c, const char *module)
{
    static const char *const names[] = {".self_attn", ".mlp", ".experts", ".wq_b", ".wk"};
    const char *layer = strstr(module, "layers."), *last = strrchr(module, '.');
    size_t len = strlen(module);

    if (layer == NULL || strtoll(layer + strlen("layers."), NULL, 10) >= c->l->layers ||
        strcmp(last, ".weights_proj") == 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(last, names[i]) == 0) {
            return true;
        }
    }
    return len > 5 && strcmp(module + len - 5, "_proj") == 0;
}

static hone_status refuse_mixed(import_config *c, const json_t *quant)
{
    static const char *const keys[] = {"modules_to_not_convert", "ignored_layers"};

    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        const json_t *list = json_object_get(quant, keys[k]);

        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *module = json_string_value(json_array_get(list, i));

            if (module != NULL && is_ours(c, module)) {
                return IMPORT_FAIL(c,
                                   "'%s' has %.60s: layers that are quantised in part are not "
                                   "modelled",
                                   keys[k], module);
            }
        }
    }
    return HONE_OK;
}

static hone_status read_blocks(import_config *c, const json_t *quant, int32_t scale)
{
    hone_status status = HONE_OK;
    const json_t *blocks = json_object_get(quant, "weight_block_size");
    const char *format = import_text(quant, "scale_fmt");
    int64_t block[2] = {0};

    if (json_array_size(blocks) != 2) {
        return IMPORT_FAIL(
            c, "quantization_config: fp8 without a 'weight_block_size' of two is not modelled");
    }
    for (size_t i = 0; i < 2; i++) {
        TRY(import_number(c, json_array_get(blocks, i), "weight_block_size", &block[i]));
        if (block[i] < 1 || block[i] > 4096) {
            return IMPORT_FAIL(c, "'weight_block_size' must be from 1 to 4096");
        }
    }
    if (format != NULL && strcmp(format, "ue8m0") != 0) {
        return IMPORT_FAIL(c, "'scale_fmt' %.40s: only ue8m0 is known", format);
    }
    c->l->weights =
        (llm_quant){HONE_DTYPE_E4M3, scale, (int32_t)block[0], (int32_t)block[1], format != NULL};
done:
    return status;
}

/* Experts are stored like the rest unless expert_dtype says fp4: at the top in V4, with the
 * quantisation in V4.1, and nowhere in re-exports whose experts are fp8. */
static hone_status read_quantisation(import_config *c, int32_t scale)
{
    static const llm_quant mxfp4 = {HONE_DTYPE_E2M1, HONE_DTYPE_UE8M0, 1, 32, true};
    hone_status status = HONE_OK;
    const json_t *quant = import_find(c, "quantization_config");
    const char *experts = import_text(c->text, "expert_dtype"), *method = NULL;

    quant = quant != NULL ? quant : json_object_get(c->root, "quantization_config");
    if (quant == NULL || json_is_null(quant)) {
        return HONE_OK;
    }
    method = import_text(quant, "quant_method");
    experts = experts != NULL ? experts : import_text(quant, "expert_dtype");
    if (method != NULL && strcmp(method, "mxfp4") == 0) {
        c->l->routed = mxfp4;
        return HONE_OK;
    }
    if (method == NULL || strcmp(method, "fp8") != 0) {
        return IMPORT_FAIL(c, "quant_method '%.40s': fp8 and mxfp4 are known",
                           method != NULL ? method : "");
    }
    TRY(refuse_mixed(c, quant));
    TRY(read_blocks(c, quant, scale));
    c->l->routed = c->l->weights;
    if (experts != NULL && strcmp(experts, "fp4") == 0) {
        c->l->routed = mxfp4;
    } else if (experts != NULL && strcmp(experts, "fp8") != 0) {
        return IMPORT_FAIL(c, "'expert_dtype' %.40s: fp4 and fp8 are known", experts);
    }
done:
    return status;
}

static hone_status read_config(import_config *c)
{
    hone_status status = HONE_OK;
    const json_t *nested = json_object_get(c->root, "text_config");
    const import_family *family = NULL;

    c->text = json_is_object(nested) ? nested : c->root;
    c->family = import_text(c->text, "model_type");
    if (c->family == NULL) {
        return IMPORT_FAIL(c, "'model_type' is missing: this is no Hugging Face config.json");
    }
    TRY(import_find_family(c, &family));
    c->l->attention = family->attention;
    TRY(read_sizes(c));
    TRY(read_feed_forward(c));
    TRY(family->read(c));
    TRY(read_quantisation(c, family->scale));
    TRY(llm_check(c->l, c->source, c->error));
done:
    return status;
}

hone_status llm_import_text(const char *source, const char *text, size_t len, llm *out,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    json_error_t problem;
    llm l;
    json_t *root = NULL;

    if (len > IMPORT_MAX_BYTES) {
        return status_set(error, HONE_LIMIT, source, 0, "longer than %d bytes", IMPORT_MAX_BYTES);
    }
    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL) {
        return status_set(error, HONE_BAD_TEXT, source, problem.line, "%s", problem.text);
    }
    llm_init(&l);
    import_config c = {.source = source, .root = root, .error = error, .l = &l};
    if (!json_is_object(root)) {
        status = IMPORT_FAIL(&c, "a config.json is an object");
        goto done;
    }
    TRY(read_config(&c));
    *out = l;
done:
    json_decref(root);
    return status;
}

/* A pipe or a device could block or never end: only a regular file of a bounded size is read. */
static hone_status read_file(const char *path, char **text, size_t *len, hone_error *error)
{
    struct stat facts;
    char *bytes = NULL;
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return status_set(error, HONE_IO, path, 0, "cannot be opened: %s", strerror(errno));
    }
    hone_status status = HONE_OK;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        status = status_set(error, HONE_IO, path, 0, "is not a regular file");
        goto done;
    }
    if (facts.st_size > IMPORT_MAX_BYTES) {
        status = status_set(error, HONE_LIMIT, path, 0, "longer than %d bytes", IMPORT_MAX_BYTES);
        goto done;
    }
    bytes = malloc((size_t)facts.st_size + 1);
    if (bytes == NULL) {
        status = status_set(error, HONE_NO_MEMORY, path, 0, "%lld bytes", (long long)facts.st_size);
        goto done;
    }
    while (*len < (size_t)facts.st_size &&
           (got = read(fd, bytes + *len, (size_t)facts.st_size - *len)) > 0) {
        *len += (size_t)got;
    }
    if (got < 0) {
        status = status_set(error, HONE_IO, path, 0, "cannot be read: %s", strerror(errno));
        goto done;
    }
    *text = bytes;
    bytes = NULL;
done:
    free(bytes);
    close(fd);
    return status;
}

hone_status llm_import(const char *path, llm *out, hone_error *error)
{
    hone_status status = HONE_OK;
    char *text = NULL;
    size_t len = 0;

    TRY(read_file(path, &text, &len, error));
    TRY(llm_import_text(path, text, len, out, error));
done:
    free(text);
    return status;
}
