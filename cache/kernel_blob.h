/* kernel_blob.h - a compiled module as one compressed run of bytes. Private to cache/. */
#ifndef HONE_CACHE_KERNEL_BLOB_H
#define HONE_CACHE_KERNEL_BLOB_H

#include "cache/kernel_cache.h"

/* The caller frees *out. */
hone_status kernel_blob_pack(const kernel_entry *entry, uint8_t **out, size_t *len,
                             hone_error *error);

/* HONE_STORE_DAMAGED for bytes that are not a module, whatever they say of themselves: declared
 * sizes are bounded before anything is taken. The caller frees *out with kernel_entry_free. */
hone_status kernel_blob_unpack(const uint8_t *bytes, size_t len, kernel_entry *out,
                               hone_error *error);

#endif
