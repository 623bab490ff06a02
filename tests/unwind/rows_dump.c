// SPDX-License-Identifier: MIT
// Prints the rows that greenprof's CFI reader computes from a file's .eh_frame.
//
// usage: rows_dump FILE < "FDE-OFFSET LOC" lines, hexadecimal as readelf prints them; one row a
// line comes out.
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/cfi.h"
#include "unwind/packed_row.h"

static const uint8_t *file;
static size_t file_len;

static int map_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    file_len = (size_t)st.st_size;
    file = mmap(NULL, file_len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return file == MAP_FAILED ? -1 : 0;
}

static const Elf64_Shdr *find_section(const char *name)
{
    const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + ehdr->e_shoff);
    const char *names = (const char *)file + sections[ehdr->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < ehdr->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, name) == 0)
            return &sections[i];
    return NULL;
}

static void print_rule(unsigned reg, const gp_rule_t *rule)
{
    static const char *const format[] = {"s", "u", "c%+d", "v%+d", "r%d", "exp", "vexp"};
    if (rule->kind != GP_RULE_SAME) {
        printf(" %u=", reg);
        printf(format[rule->kind], rule->value);
    }
}

static void print_row(const gp_row_t *row)
{
    if (row->cfa_is_expr)
        printf("exp");
    else
        printf("%u%+" PRId64, row->cfa_reg, row->cfa_offset);
    for (unsigned reg = 0; reg < GP_REG_COUNT; reg++)
        print_rule(reg, &row->regs[reg]);
    putchar('\n');
}

// How many rows the packed form can express, for UNWIND.md. Told on standard error.
static struct {
    unsigned long all, special, realigned, full;
} census;

static void count_row(const gp_row_t *row, uintptr_t pc)
{
    gp_packed_row_t packed = gp_row_pack(row, pc);
    bool special = gp_row_kind(packed) == GP_ROW_SPECIAL;
    census.all++;
    census.special += special;
    census.realigned += special && gp_row_special_of(packed) == GP_SPECIAL_REALIGN;
    census.full += special && gp_row_special_of(packed) == GP_SPECIAL_FULL;
}

int main(int argc, char **argv)
{
    uint64_t offset, loc;
    if (argc != 2 || map_file(argv[1]) != 0)
        return 2;
    const Elf64_Shdr *eh = find_section(".eh_frame");
    if (eh == NULL)
        return 2;
    gp_cfi_section_t section = {
        .start = file + eh->sh_offset,
        .end = file + eh->sh_offset + eh->sh_size,
    };
    uintptr_t delta = (uintptr_t)section.start - eh->sh_addr;
    while (scanf("%" SCNx64 " %" SCNx64, &offset, &loc) == 2) {
        gp_fde_t fde;
        gp_row_t row;
        const uint8_t *next;
        if (gp_cfi_decode(&section, section.start + offset, &fde, &next) &&
            gp_cfi_row(&section, &fde, loc + delta, &row)) {
            print_row(&row);
            count_row(&row, loc + delta);
        } else {
            puts("none");
        }
    }
    fprintf(stderr, "%lu rows, %lu special, %lu of them realigned, %lu full\n", census.all, census.special,
            census.realigned, census.full);
    return 0;
}
