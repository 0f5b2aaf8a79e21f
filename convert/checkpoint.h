/* checkpoint.h - the tensors of a checkpoint by name: one safetensors file, or shards with their
 * model.safetensors.index.json. */
#ifndef HONE_CONVERT_CHECKPOINT_H
#define HONE_CONVERT_CHECKPOINT_H

#include "convert/safetensors.h"

#define CHECKPOINT_INDEX        "model.safetensors.index.json"
#define CHECKPOINT_SHARDS_MOST  4096u
#define CHECKPOINT_TENSORS_MOST (UINT64_C(1) << 18)
/* Bytes of all headers together: what is kept of them is less (convert.md: 512 MiB in all). */
#define CHECKPOINT_HEADERS_MOST (UINT64_C(64) << 20)

typedef struct checkpoint_entry {
    const safetensors_tensor *tensor;
    size_t shard;
} checkpoint_entry;

typedef struct checkpoint {
    const char *path; /* as it was named */
    bool folder;      /* shards and an index, or a folder of files; else one file */
    bool indexed;     /* there is an index, and it names just what the shards hold */
    safetensors_file **shards;
    const char **names; /* of the shards' files, without folders */
    size_t shards_len;
    const checkpoint_entry *entries; /* by name */
    size_t entries_len;
} checkpoint;

/* Open a .safetensors file, an index, or a folder that holds an index or .safetensors files; reads
 * every header. HONE_BAD_TEXT: an index that lies (a file with a path in its name, a tensor that
 * its shard lacks or that it leaves out), a name in two shards; HONE_LIMIT: past a limit; else as
 * safetensors_open. Caller closes *out. */
hone_status checkpoint_open(const char *path, checkpoint **out, hone_error *error);
void checkpoint_close(checkpoint *c); /* NULL is fine */

/* The tensor of this name, or NULL. Thread-safe. */
const checkpoint_entry *checkpoint_find(const checkpoint *c, const char *name);

#endif
