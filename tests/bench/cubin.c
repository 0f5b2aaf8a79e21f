/* cubin.c - see cubin.h. */
#include "tests/bench/cubin.h"

#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes from behind instruction `at` to `to`, split over the word as the arch does. */
static cubin_word with_target(cubin_word w, uint32_t at, uint32_t to, unsigned arch)
{
    const int64_t bytes = ((int64_t)to - (int64_t)at - 1) * 16;
    const uint64_t units = (uint64_t)(bytes / 4);

    if (arch < 90) {
        w.low |= (units & 0x3fffffff) << 34;
        w.high |= units >> 30 & 0x3ffff;
    } else {
        w.low |= (units & 0xff) << 16 | (units >> 8 & 0x3fffffff) << 34;
        w.high |= units >> 38 & 0x3ffff;
    }
    return w;
}

cubin_word cubin_branch(uint32_t at, uint32_t to, unsigned guard, unsigned arch)
{
    const cubin_word w = {0x947 | (uint64_t)guard << 12, 0x000fea0003800000};

    return with_target(w, at, to, arch);
}

cubin_word cubin_branch_uniform(uint32_t at, uint32_t to)
{
    return with_target((cubin_word){0x0000000001007547, 0x000ff0000b800000}, at, to, 90);
}

cubin_word cubin_call(uint32_t at, uint32_t to)
{
    return with_target((cubin_word){0x0000000000000944, 0x000fea0003c00000}, at, to, 90);
}

cubin_word cubin_bssy(uint32_t at, uint32_t to)
{
    const int64_t bytes = ((int64_t)to - (int64_t)at - 1) * 16;

    return (cubin_word){(uint64_t)bytes << 32 | 0x27945, 0x000fe20003800000};
}

uint8_t *cubin_make(const char *name, const cubin_word *code, size_t code_len, unsigned arch,
                    size_t *len)
{
    char names[256] = "";
    const int text_name = 1 + (int)strlen(".shstrtab") + 1;
    const int used = snprintf(names + 1, sizeof names - 1, ".shstrtab") + 2;
    const size_t names_len =
        (size_t)used +
        (size_t)snprintf(names + used, sizeof names - (size_t)used, ".text.%s", name) + 1;
    const size_t code_at = sizeof(Elf64_Ehdr), code_bytes = code_len * sizeof *code;
    const size_t names_at = code_at + code_bytes;
    const size_t table_at = (names_at + names_len + 7) / 8 * 8;
    const Elf64_Shdr sections[3] = {
        {.sh_name = 0},
        {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = names_len},
        {.sh_name = (Elf64_Word)text_name,
         .sh_type = SHT_PROGBITS,
         .sh_offset = code_at,
         .sh_size = code_bytes}};
    const Elf64_Ehdr header = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8},
        .e_type = ET_EXEC,
        .e_machine = 190,
        .e_version = EV_CURRENT,
        .e_shoff = table_at,
        .e_flags = 0x06000004 | arch << 8,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
        .e_shstrndx = 1};

    *len = table_at + sizeof sections;
    uint8_t *bytes = calloc(1, *len);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + code_at, code, code_bytes);
    memcpy(bytes + names_at, names, names_len);
    memcpy(bytes + table_at, sections, sizeof sections);
    return bytes;
}
