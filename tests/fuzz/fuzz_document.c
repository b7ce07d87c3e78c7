/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a document: an error or a struct within its ranges, and a refused document changes nothing. */
#include "traces/document.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct thing {
    uint32_t count;
    uint64_t bytes;
    double clock_mhz;
    bool on;
    int32_t mode;
    char title[8];
};

static const char *const modes[] = { "fast", "slow", NULL };
static const struct bell_field table[] = {
    { "count", BELL_FIELD_U32, offsetof(struct thing, count), "", 1, 100, 1, true, NULL, "" },
    { "gpu.bytes", BELL_FIELD_U64, offsetof(struct thing, bytes), "bytes", 0, 9e15, 7, false, NULL, "" },
    { "gpu.clock.mhz", BELL_FIELD_REAL, offsetof(struct thing, clock_mhz), "MHz", 1, 5000, 1000, false, NULL, "" },
    { "on", BELL_FIELD_BOOL, offsetof(struct thing, on), "", 0, 1, 1, false, NULL, "" },
    { "mode", BELL_FIELD_ENUM, offsetof(struct thing, mode), "", 0, 1, 1, false, modes, "" },
    { "title", BELL_FIELD_STRING, offsetof(struct thing, title), "", 0, 8, 0, false, NULL, "" },
    { NULL, BELL_FIELD_U32, 0, "", 0, 0, 0, false, NULL, "" },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[sizeof table / sizeof *table][BELL_SOURCE_SIZE];
    struct bell_sources sources = { text };
    struct bell_error err = { BELL_OK, "" };
    struct thing t, before;
    memset(&t, 0x5a, sizeof t);
    before = t;
    if (bell_document_parse("f", (const char *)data, size, "bell.thing/1", table, &t, &sources, &err) == BELL_OK) {
        if (t.count < 1 || t.count > 100 || !(t.clock_mhz >= 1 && t.clock_mhz <= 5000) ||
            (t.mode != 0 && t.mode != 1) || !memchr(t.title, '\0', sizeof t.title))
            abort();
    } else if (memcmp(&t, &before, sizeof t) != 0 || err.text[0] == '\0') {
        abort();
    }
    return 0;
}
