/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as measurement rows: an error, or rows whose every text ends and whose lines do not go back. */
#include "traces/rows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_rows rows = { NULL, 0 };
    if (bell_rows_parse("f", (const char *)data, size, &rows, &err) != BELL_OK) {
        if (rows.row || err.text[0] == '\0') abort();
        return 0;
    }
    int line = 1;
    for (size_t i = 0; i < rows.count; i++) {
        const struct bell_row *r = &rows.row[i];
        if (r->line < line || !memchr(r->source, '\0', sizeof r->source) || !memchr(r->metric, '\0', sizeof r->metric))
            abort();
        line = r->line;
        for (int k = 0; k < r->config_count; k++)
            if (bell_row_config(r, r->config[k][0]) != r->config[k][1]) abort();
    }
    bell_rows_free(&rows);
    return 0;
}
