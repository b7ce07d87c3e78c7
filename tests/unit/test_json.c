/* SPDX-License-Identifier: Apache-2.0
 * The document reader and the row reader: what they accept, and the message of every refusal. */
#include "traces/document.h"
#include "traces/rows.h"
#include "traces/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef BELL_TEST_SOURCE_DIR
#define BELL_TEST_SOURCE_DIR "."
#endif

struct thing {
    uint32_t count;
    uint64_t bytes;
    double clock_mhz, wait_ps;
    bool on;
    int32_t mode;
    char title[8];
};

static const char *const modes[] = { "fast", "slow", NULL };
static const struct bell_field table[] = {
    { "count", BELL_FIELD_U32, offsetof(struct thing, count), "", 1, 100, 1, true, NULL, "" },
    { "gpu.bytes", BELL_FIELD_U64, offsetof(struct thing, bytes), "bytes", 0, 9e15, 7, false, NULL, "" },
    { "gpu.clock_mhz", BELL_FIELD_REAL, offsetof(struct thing, clock_mhz), "MHz", 1, 5000, 1000, false, NULL, "" },
    { "gpu.wait.ps", BELL_FIELD_REAL, offsetof(struct thing, wait_ps), "ps", 0, 1e12, 5, false, NULL, "" },
    { "on", BELL_FIELD_BOOL, offsetof(struct thing, on), "", 0, 1, 1, false, NULL, "" },
    { "mode", BELL_FIELD_ENUM, offsetof(struct thing, mode), "", 0, 1, 1, false, modes, "" },
    { "title", BELL_FIELD_STRING, offsetof(struct thing, title), "", 0, 8, 0, false, NULL, "" },
    { NULL, BELL_FIELD_U32, 0, "", 0, 0, 0, false, NULL, "" },
};
enum { ROWS = sizeof table / sizeof *table - 1 };

static enum bell_status parse(const char *text, struct thing *out, const struct bell_sources *sources,
                              struct bell_error *err)
{
    return bell_document_parse("f", text, strlen(text), "bell.thing/1", table, out, sources, err);
}

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

static void plain_values_are_read(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    struct thing t;
    memset(&t, 0xee, sizeof t);
    if (parse("{\"schema\":\"bell.thing/1\",\"name\":\"n\",\"summary\":\"s\",\"count\":3,"
              "\"gpu\":{\"bytes\":9000000000000000,\"wait\":{\"ps\":2.5}},\"on\":false,\"mode\":\"fast\",\"title\":"
              "\"a\\u00e9\"}\n",
              &t, NULL, &err) != BELL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(t.count, 3);
    assert_true(t.bytes == UINT64_C(9000000000000000));
    assert_true(same(t.clock_mhz, 1000));
    assert_true(same(t.wait_ps, 2.5));
    assert_false(t.on);
    assert_int_equal(t.mode, 0);
    assert_string_equal(t.title, "a\xc3\xa9");
}

static void sources_are_collected(void **state)
{
    (void)state;
    static char text[ROWS][BELL_SOURCE_SIZE];
    struct bell_error err = { BELL_OK, "" };
    struct bell_sources sources = { text };
    struct thing t;
    memset(text, 'x', sizeof text);
    if (parse("{\"schema\":\"bell.thing/1\",\"parameters\":{\"count\":{\"value\":4,\"source\":\"counted\"},"
              "\"gpu\":{\"clock_mhz\":{\"source\":\"Table "
              "1\",\"value\":1970},\"bytes\":{\"value\":1}}},\"mode\":\"slow\"}",
              &t, &sources, &err) != BELL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(t.count, 4);
    assert_true(same(t.clock_mhz, 1970));
    assert_string_equal(text[0], "counted");
    assert_string_equal(text[1], "");
    assert_string_equal(text[2], "Table 1");
    assert_string_equal(text[5], "");
}

struct refusal {
    const char *text, *message;
};

#define S "{\"schema\":\"bell.thing/1\","
#define C S "\"count\":1,"

static void refusals_say_what_was_expected(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        { C "\"x\":1}", "f: $.x: unknown key" },
        { C "\"Count\":1}", "f: $.Count: unknown key" },
        { C "\"gpu.bytes\":1}", "f: $.gpu.bytes: unknown key" },
        { C "\"gpu\":{\"byte\":1}}", "f: $.gpu.byte: unknown key" },
        { C "\"parameters\":{\"gpu\":{\"x\":1}}}", "f: $.parameters.gpu.x: unknown key" },
        { C "\"parameters\":{\"name\":\"n\"}}", "f: $.parameters.name: unknown key" },
        { C "\"count\":2}", "f: $.count: duplicate key" },
        { C "\"parameters\":{\"count\":2}}", "f: $.parameters.count: given twice" },
        { C "\"gpu\":{\"bytes\":1,\"bytes\":1}}", "f: $.gpu.bytes: duplicate key" },
        { C "\"schema\":\"bell.thing/1\"}", "f: $.schema: duplicate key" },
        { S "\"count\":\"1\"}", "f: $.count: expected a whole number, found text" },
        { S "\"count\":null}", "f: $.count: expected a whole number, found null" },
        { S "\"count\":[1]}", "f: $.count: expected a whole number, found an array" },
        { S "\"count\":{}}", "f: $.count: expected a value, or an object with the key value" },
        { S "\"count\":{\"value\":1,\"unit\":\"x\"}}", "f: $.count: unknown key 'unit'" },
        { S "\"count\":{\"value\":1,\"value\":1}}", "f: $.count: duplicate key 'value'" },
        { S "\"count\":{\"value\":1,\"source\":1}}", "f: $.count: expected source to be text" },
        { S "\"count\":101}", "f: $.count: count: 101 is out of range" },
        { S "\"count\":0}", "is out of range, expected 1 to 100" },
        { S "\"count\":1.5}", "f: $.count: count: 1.5 is not a whole number" },
        { C "\"gpu\":{\"clock_mhz\":1e999}}", "f: a number is not finite" },
        { C "\"gpu\":{\"clock_mhz\":NaN}}", "f:1: syntax error" },
        { C "\"gpu\":1}", "f: $.gpu: expected an object" },
        { C "\"gpu\":{\"wait\":3}}", "f: $.gpu.wait: expected an object" },
        { C "\"parameters\":[]}", "f: $.parameters: expected an object" },
        { C "\"name\":1}", "f: $.name: expected text" },
        { C "\"on\":1}", "f: $.on: expected true or false, found a number" },
        { C "\"mode\":\"Fast\"}", "f: $.mode: mode: 'Fast' is unknown, expected one of: fast, slow" },
        { C "\"mode\":0}", "f: $.mode: expected text, found a number" },
        { C "\"title\":\"12345678\"}", "f: $.title: title: longer than 7 characters" },
        { S "\"on\":true}", "f: $.count: missing, this field is required" },
        { "{\"schema\":\"bell.thing/2\",\"count\":1}", "f: $.schema: expected \"bell.thing/1\", found bell.thing/2" },
        { "{\"Schema\":\"bell.thing/1\",\"count\":1}", "f: $.schema: expected \"bell.thing/1\", found no such key" },
        { "[]", "f: $: expected an object" },
        { "", "f:1: syntax error, the text ends too early" },
        { S "\n\"count\":1}\n x", "f:3: syntax error or trailing text near 'x'" },
        { S "\n\"count\":1,}", "f:2: syntax error" },
        { S "\n\"count\":1", "f:2: expected balanced brackets" },
        { S "\"count\":1]", "f:1: expected balanced brackets" },
        { S "\n\n\"count\":01}", "f:3: expected a number in JSON's form" },
        { S "\"count\":1.}", "f:1: expected a number in JSON's form" },
        { S "\"count\":-}", "f:1: expected a number in JSON's form" },
        { C "\"title\":\"a\tb\"}", "f:1: expected no control byte" },
        { C "\"title\":\"a\\u0000\"}", "f:1: expected no \\u0000" },
        { C "\"title\":\"\xff\"}", "f:1: expected UTF-8" },
        { C "\"title\":\"\xc0\xaf\"}", "f:1: expected UTF-8" },
        { C "\"title\":\"\xed\xa0\x80\"}", "f:1: expected UTF-8" },
        { C "\"title\":\"\xe2\x82\"}", "f:1: expected UTF-8" },
        { C "\"title\":\"a}", "f:1: expected the end of a string" },
        { "\xef\xbb\xbf{}", "f:1: expected plain JSON" },
        { C "\"title\":\"\\q\"}", "f:1: syntax error" },
        { "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "f:1: expected nesting of at most 32" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bell_error err = { BELL_OK, "" };
        struct thing t, before;
        memset(&t, 0xaa, sizeof t);
        before = t;
        enum bell_status s = parse(cases[i].text, &t, NULL, &err);
        if (s != BELL_INVALID || err.status != BELL_INVALID || !strstr(err.text, cases[i].message))
            fail_msg("case %zu: '%s', expected '%s'", i, err.text, cases[i].message);
        assert_memory_equal(&t, &before, sizeof t);
    }
}

static void nul_bytes_and_large_texts_are_refused(void **state)
{
    (void)state;
    static const char nul[] = "{\"schema\":\"bell.thing/1\",\"count\":1}\0";
    struct bell_error err = { BELL_OK, "" };
    struct thing t;
    assert_int_equal(bell_document_parse("f", nul, sizeof nul - 1, "bell.thing/1", table, &t, NULL, &err),
                     BELL_INVALID);
    assert_non_null(strstr(err.text, "found a control"));
    size_t size = BELL_TEXT_BYTES_MAX + 1;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, ' ', size);
    assert_int_equal(bell_document_parse("f", large, size, "bell.thing/1", table, &t, NULL, &err), BELL_INVALID);
    assert_non_null(strstr(err.text, "f: larger than 16777216 bytes"));
    free(large);
    assert_int_equal(bell_document_read("/nowhere.json", "bell.thing/1", table, &t, &err), BELL_IO);
    assert_non_null(strstr(err.text, "/nowhere.json: cannot open"));
}

static void files_are_loaded_up_to_their_limit(void **state)
{
    (void)state;
    /* Around the buffer's steps and the limit, a length must come out as it went in. */
    static const size_t sizes[] = { 0, 1, 16383, 16384, 32767, 100000, (16u << 20) - 1, 16u << 20, (16u << 20) + 1 };
    char path[] = "/tmp/bell_json_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "r+b");
    assert_non_null(f);
    struct bell_error err = { BELL_OK, "" };
    for (size_t i = 0, written = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (; written < sizes[i]; written++)
            (void)fputc('a', f);
        (void)fflush(f);
        char *text = NULL;
        size_t length = 0;
        enum bell_status s = bell_text_load(path, &text, &length, &err);
        assert_int_equal(s, sizes[i] > BELL_TEXT_BYTES_MAX ? BELL_INVALID : BELL_OK);
        if (s == BELL_OK) {
            assert_int_equal(length, sizes[i]);
            assert_int_equal(text[length], '\0');
        }
        free(text);
    }
    (void)fclose(f);
    (void)remove(path);
}

static void published_rows_are_read(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    struct bell_rows rows = { NULL, 0 };
    if (bell_rows_read(BELL_TEST_SOURCE_DIR "/traces/reference/paper.json", &rows, &err) != BELL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(rows.count, 180);
    for (size_t i = 0; i < rows.count; i++)
        assert_int_equal(rows.row[i].line, i + 2); /* one row a line after the bracket */
    assert_string_equal(rows.row[0].source, "Table 3");
    assert_string_equal(rows.row[0].platform, "P-IB");
    assert_string_equal(rows.row[0].stack, "mini-gda");
    assert_string_equal(rows.row[0].metric, "issue_us");
    assert_true(same(rows.row[0].value, 0.7));
    assert_string_equal(bell_row_config(&rows.row[0], "bytes"), "8");
    assert_string_equal(bell_row_config(&rows.row[0], "ordering"), "gpu-fence");
    assert_null(bell_row_config(&rows.row[0], "Bytes"));
    bell_rows_free(&rows);
    assert_int_equal(rows.count, 0);
}

#define R "{\"source\":\"s\",\"platform\":\"p\",\"stack\":\"k\",\"metric\":\"m\",\"value\":1.25,\"config\":{"

static void broken_rows_name_their_line(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        { "{}", "r: expected an array of rows" },
        { "[1]", "r:1: 'row': expected an object" },
        { "[\n" R "}},\n\n{\"source\":\"s\"}]", "r:4: 'platform': missing" },
        { "[\n" R "}},\n{\"source\":\"s\",\"source\":\"s\"}]", "r:3: 'source': duplicate key" },
        { "[" R "}},{\"Source\":\"s\"}]", "r:1: 'Source': unknown key" },
        { "[{\"source\":\"\"}]", "r:1: 'source': expected text that is neither empty nor too long" },
        { "[{\"platform\":\"123456789012345678901234\"}]", "r:1: 'platform': expected text" },
        { "[{\"value\":\"1\"}]", "r:1: 'value': expected a number" },
        { "[{\"value\":1e999}]", "r: a number is not finite" },
        { "[\n" R "\"a\":1,\"a\":2}}]", "r:2: 'a': duplicate key" },
        { "[\n" R "\"a\":[]}}]", "r:2: 'a': expected text, a number or true or false" },
        { "[\n" R
          "\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,\"k\":1,\"l\":1,\"m\":1}}]",
          "r:2: 'config': expected at most 12 keys" },
        { "[\n" R "}},]", "r:2: syntax error" },
    };
    struct bell_rows rows = { NULL, 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bell_error err = { BELL_OK, "" };
        enum bell_status s = bell_rows_parse("r", cases[i].text, strlen(cases[i].text), &rows, &err);
        if (s != BELL_INVALID || !strstr(err.text, cases[i].message))
            fail_msg("case %zu: '%s', expected '%s'", i, err.text, cases[i].message);
        assert_null(rows.row);
    }
}

static void row_config_is_text(void **state)
{
    (void)state;
    static const char text[] =
        "[\n" R "\"n\":0.1,\"i\":4096,\"t\":true,\"f\":false,\"w\":\"a ] } { \\\" b\"}},\n" R "}}]";
    struct bell_error err = { BELL_OK, "" };
    struct bell_rows rows = { NULL, 0 };
    if (bell_rows_parse("r", text, sizeof text - 1, &rows, &err) != BELL_OK) fail_msg("%s", err.text);
    assert_int_equal(rows.count, 2);
    assert_string_equal(bell_row_config(&rows.row[0], "n"), "0.1");
    assert_string_equal(bell_row_config(&rows.row[0], "i"), "4096");
    assert_string_equal(bell_row_config(&rows.row[0], "t"), "true");
    assert_string_equal(bell_row_config(&rows.row[0], "f"), "false");
    assert_string_equal(bell_row_config(&rows.row[0], "w"), "a ] } { \" b");
    assert_int_equal(rows.row[1].line, 3);
    assert_int_equal(rows.row[1].config_count, 0);
    bell_rows_free(&rows);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values_are_read),
        cmocka_unit_test(sources_are_collected),
        cmocka_unit_test(refusals_say_what_was_expected),
        cmocka_unit_test(nul_bytes_and_large_texts_are_refused),
        cmocka_unit_test(files_are_loaded_up_to_their_limit),
        cmocka_unit_test(published_rows_are_read),
        cmocka_unit_test(broken_rows_name_their_line),
        cmocka_unit_test(row_config_is_text),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
