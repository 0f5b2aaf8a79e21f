/* sass_cubin.c - finds a kernel's code in a cubin, an ELF file of 64 bits. What the file says of
 * its own sizes is checked before it is followed. */
#include "bench/sass_parts.h"

#include "core/status.h"

#include <elf.h>

#define MACHINE_CUDA 190
/* Of EI_ABIVERSION: from CUDA 13 on the arch lies in bits 8-15 of the flags, before in bits 0-7. */
#define ABI_ARCH_MOVED 8

typedef struct elf_file {
    const uint8_t *bytes;
    size_t len;
    Elf64_Ehdr header;
    Elf64_Shdr names; /* section of the names */
} elf_file;

static hone_status refuse(const char *what, hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, "cubin", 0, "%s", what);
}

static bool lies_within(const elf_file *f, uint64_t offset, uint64_t size)
{
    return offset <= f->len && size <= f->len - offset;
}

/* `index` < e_shnum, whose table is known to lie within the file. */
static Elf64_Shdr section_at(const elf_file *f, uint32_t index)
{
    Elf64_Shdr section;

    memcpy(&section, f->bytes + f->header.e_shoff + (size_t)index * sizeof section, sizeof section);
    return section;
}

static hone_status open_file(const void *cubin, size_t len, elf_file *out, hone_error *error)
{
    elf_file f = {.bytes = cubin, .len = len};

    if (len < sizeof f.header) {
        return refuse("shorter than an ELF header", error);
    }
    memcpy(&f.header, cubin, sizeof f.header);
    if (memcmp(f.header.e_ident, ELFMAG, SELFMAG) != 0 ||
        f.header.e_ident[EI_CLASS] != ELFCLASS64 || f.header.e_ident[EI_DATA] != ELFDATA2LSB ||
        f.header.e_machine != MACHINE_CUDA) {
        return refuse("not an ELF file of a GPU", error);
    }
    if (f.header.e_shentsize != sizeof(Elf64_Shdr) ||
        !lies_within(&f, f.header.e_shoff, (uint64_t)f.header.e_shnum * sizeof(Elf64_Shdr)) ||
        f.header.e_shstrndx >= f.header.e_shnum) {
        return refuse("its table of sections does not lie within it", error);
    }
    f.names = section_at(&f, f.header.e_shstrndx);
    if (f.names.sh_type != SHT_STRTAB || !lies_within(&f, f.names.sh_offset, f.names.sh_size)) {
        return refuse("its section names do not lie within it", error);
    }
    *out = f;
    return HONE_OK;
}

static uint32_t arch_of(const elf_file *f)
{
    const uint32_t flags = f->header.e_flags;

    return (f->header.e_ident[EI_ABIVERSION] >= ABI_ARCH_MOVED ? flags >> 8 : flags) & 0xff;
}

/* Whether the section is called prefix + name. */
static bool is_called(const elf_file *f, const Elf64_Shdr *section, const char *prefix,
                      const char *name)
{
    const size_t prefix_len = strlen(prefix), name_bytes = strlen(name) + 1; /* with its NUL */

    if (section->sh_name > f->names.sh_size ||
        f->names.sh_size - section->sh_name < prefix_len + name_bytes) {
        return false;
    }
    const uint8_t *at = f->bytes + f->names.sh_offset + section->sh_name;
    return memcmp(at, prefix, prefix_len) == 0 && memcmp(at + prefix_len, name, name_bytes) == 0;
}

hone_status sass_find(const void *cubin, size_t len, const char *lowered, sass_code *out,
                      hone_error *error)
{
    hone_status status = HONE_OK;
    elf_file f = {.len = 0};

    TRY(open_file(cubin, len, &f, error));
    const uint32_t arch = arch_of(&f);
    if (arch < 80) {
        return status_set(error, HONE_UNSUPPORTED, "cubin", 0, "code for sm_%u is not read", arch);
    }
    for (uint32_t i = 0; i < f.header.e_shnum; i++) {
        const Elf64_Shdr section = section_at(&f, i);
        if (section.sh_type != SHT_PROGBITS || !is_called(&f, &section, ".text.", lowered)) {
            continue;
        }
        if (!lies_within(&f, section.sh_offset, section.sh_size) || section.sh_size == 0 ||
            section.sh_size % SASS_INSTRUCTION_BYTES != 0) {
            return refuse("a kernel's code is cut off", error);
        }
        if (section.sh_size / SASS_INSTRUCTION_BYTES > SASS_MAX_INSTRUCTIONS) {
            return status_set(error, HONE_LIMIT, "cubin", 0,
                              "a kernel of more than %u instructions", SASS_MAX_INSTRUCTIONS);
        }
        *out = (sass_code){.bytes = f.bytes + section.sh_offset,
                           .len = (uint32_t)(section.sh_size / SASS_INSTRUCTION_BYTES),
                           .arch = arch};
        return HONE_OK;
    }
    status = status_set(error, HONE_NOT_FOUND, "cubin", 0, "no kernel %.200s", lowered);
done:
    return status;
}
