/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target over stored inputs, without libFuzzer: each argument is a file, or a folder read to any depth.  A
 * folder that does not exist counts as empty. */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t inputs_count;

static int replay_file(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)place;
    if (kind != FTW_F) return 0;
    size_t size = (size_t)info->st_size;
    uint8_t *data = malloc(size + 1);
    FILE *file = fopen(path, "rb");
    int failed = !data || !file || fread(data, 1, size, file) != size;
    if (failed) {
        fprintf(stderr, "cannot read %s\n", path);
    } else {
        (void)LLVMFuzzerTestOneInput(data, size);
        inputs_count++;
    }
    if (file) (void)fclose(file);
    free(data);
    return failed;
}

int main(int argc, char **argv)
{
    /* The empty input needs no file. */
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) != 0) continue;
        if (nftw(argv[i], replay_file, 16, FTW_PHYS) != 0) return 1;
    }
    printf("%zu inputs\n", inputs_count + 1);
    return 0;
}
