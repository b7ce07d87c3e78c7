/* SPDX-License-Identifier: Apache-2.0
 * Structs described as data: every type, its range, its messages, its text. */
#include "core/field.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/program.h"
#include "core/stack.h"

struct thing {
    uint32_t count;
    uint64_t wide;
    double real;
    bool flag;
    int32_t choice;
    char name[8];
    double large;
};

static const char *const choices[] = { "red", "green", "blue", NULL };

static const struct bell_field table[] = {
    { "count", BELL_FIELD_U32, offsetof(struct thing, count), "bytes", 2, 4294967295.0, 7, true, NULL, "Count." },
    { "a.wide", BELL_FIELD_U64, offsetof(struct thing, wide), "ps", 0, 1e18, 5e9, false, NULL, "Wide." },
    { "a.real", BELL_FIELD_REAL, offsetof(struct thing, real), "ns", -1.5, 2.5, 0.25, false, NULL, "Real." },
    { "flag", BELL_FIELD_BOOL, offsetof(struct thing, flag), "", 0, 1, 1, false, NULL, "Flag." },
    { "choice", BELL_FIELD_ENUM, offsetof(struct thing, choice), "", 0, 0, 2, false, choices, "Choice." },
    { "name", BELL_FIELD_STRING, offsetof(struct thing, name), "", 0, 8, 0, false, NULL, "Name." },
    { "large", BELL_FIELD_REAL, offsetof(struct thing, large), "", -1e300, 2e300, 0, false, NULL, "Large." },
    { NULL, BELL_FIELD_BOOL, 0, "", 0, 0, 0, false, NULL, NULL },
};

enum { COUNT, WIDE, REAL, FLAG, CHOICE, NAME, LARGE };

static struct thing thing;
static struct bell_error error;

static int fresh(void **state)
{
    (void)state;
    memset(&thing, 0xa5, sizeof thing);
    bell_field_defaults(table, &thing);
    memset(&error, 0, sizeof error);
    return 0;
}

static void test_defaults_and_find(void **state)
{
    (void)state;
    assert_int_equal(thing.count, 7);
    assert_int_equal(thing.wide, 5000000000);
    assert_true(thing.real == 0.25);
    assert_true(thing.flag);
    assert_int_equal(thing.choice, 2);
    assert_string_equal(thing.name, "");
    assert_ptr_equal(bell_field_find(table, "a.real"), table + REAL);
    assert_null(bell_field_find(table, "real"));
    assert_null(bell_field_find(table, "Count"));
    assert_null(bell_field_find(table, ""));
}

/* Sets text, expects the status, and that a refusal changes nothing and says what was expected. */
static void set(int field, const char *text, const char *complaint)
{
    struct thing before = thing;
    error.text[0] = '\0';
    enum bell_status s = bell_field_set_text(table + field, &thing, text, &error);
    if (!complaint) {
        if (s != BELL_OK) fail_msg("'%s' was refused: %s", text, error.text);
        return;
    }
    if (s != BELL_INVALID) fail_msg("'%s' was taken", text);
    assert_int_equal(error.status, BELL_INVALID);
    assert_memory_equal(&before, &thing, sizeof before);
    assert_int_equal(strncmp(error.text, table[field].key, strlen(table[field].key)), 0);
    if (!strstr(error.text, complaint)) fail_msg("'%s' does not say '%s'", error.text, complaint);
    assert_int_equal(bell_field_set_text(table + field, &thing, text, NULL), BELL_INVALID);
}

static void test_u32(void **state)
{
    (void)state;
    set(COUNT, "2", NULL);
    assert_int_equal(thing.count, 2);
    set(COUNT, "4294967295", NULL);
    assert_int_equal(thing.count, UINT32_MAX);
    set(COUNT, "1e3", NULL);
    assert_int_equal(thing.count, 1000);
    set(COUNT, "1", "expected 2 to 4294967295 bytes");
    set(COUNT, "4294967296", "out of range");
    set(COUNT, "-3", "out of range");
    set(COUNT, "2.5", "not a whole number of bytes");
    set(COUNT, "", "not a number");
    set(COUNT, "12x", "'12x' is not a number (unit: bytes)");
    set(COUNT, "twelve", "not a number");
    set(COUNT, "nan", "out of range");
    set(COUNT, "inf", "out of range");
    assert_int_equal(thing.count, 1000);
}

static void test_u64(void **state)
{
    (void)state;
    set(WIDE, "9007199254740991", NULL);
    assert_int_equal(thing.wide, UINT64_C(9007199254740991));
    set(WIDE, "0", NULL);
    assert_int_equal(thing.wide, 0);
    set(WIDE, "9007199254740993", "not a whole number of ps"); /* would become ...992 silently */
    set(WIDE, "9007199254740992", "not a whole number of ps");
    set(WIDE, "2e18", "out of range");
    set(WIDE, "0.1", "not a whole number");
    set(WIDE, "-1", "out of range");
}

static void test_real(void **state)
{
    (void)state;
    set(REAL, "-1.5", NULL);
    assert_true(thing.real == -1.5);
    set(REAL, "2.5", NULL);
    assert_true(thing.real == 2.5);
    set(REAL, "2.5000001", "expected -1.5 to 2.5 ns");
    set(REAL, "nan", "out of range");
    set(REAL, "-inf", "out of range");
    set(REAL, "0x", "'0x' is not a number (unit: ns)");
    set(LARGE, "3e300", "large: 3e+300 is out of range, expected -1e+300 to 2e+300");
    assert_string_equal(strrchr(error.text, ' '), " 2e+300"); /* no unit, and no blank before it */
    set(LARGE, "x", "large: 'x' is not a number");
    assert_null(strstr(error.text, "unit"));
}

static void test_bool_enum_string(void **state)
{
    (void)state;
    set(FLAG, "false", NULL);
    assert_false(thing.flag);
    set(FLAG, "true", NULL);
    assert_true(thing.flag);
    set(FLAG, "1", "neither true nor false");
    set(FLAG, "True", "neither true nor false");
    set(CHOICE, "red", NULL);
    assert_int_equal(thing.choice, 0);
    set(CHOICE, "blue", NULL);
    assert_int_equal(thing.choice, 2);
    set(CHOICE, "purple", "'purple' is unknown, expected one of: red, green, blue");
    set(CHOICE, "gre", "expected one of");
    set(CHOICE, "0", "expected one of");
    set(NAME, "seven c", NULL);
    assert_string_equal(thing.name, "seven c");
    set(NAME, "eight ch", "longer than 7 characters");
    set(NAME, "", NULL);
    assert_string_equal(thing.name, "");
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(bell_field_set_number(table + COUNT, &thing, 9, &error), BELL_OK);
    assert_int_equal(bell_field_set_number(table + WIDE, &thing, 11, &error), BELL_OK);
    assert_int_equal(bell_field_set_number(table + REAL, &thing, 0.5, &error), BELL_OK);
    assert_true(bell_field_number(table + COUNT, &thing) == 9);
    assert_true(bell_field_number(table + WIDE, &thing) == 11);
    assert_true(bell_field_number(table + REAL, &thing) == 0.5);
    assert_true(bell_field_number(table + FLAG, &thing) == 1);
    assert_true(bell_field_number(table + CHOICE, &thing) == 2);
    assert_true(bell_field_number(table + NAME, &thing) == 0);
    struct thing before = thing;
    for (int f = FLAG; f <= NAME; f++)
        for (int v = 0; v < 2; v++) { /* a number is neither a bool nor a text, whatever it is */
            assert_int_equal(bell_field_set_number(table + f, &thing, v, &error), BELL_INVALID);
            assert_non_null(strstr(error.text, f == FLAG ? "expected true or false" : "expected text"));
        }
    assert_int_equal(bell_field_set_number(table + REAL, &thing, (double)NAN, &error), BELL_INVALID);
    assert_memory_equal(&before, &thing, sizeof before);
}

/* Text that reads back the same. */
static void test_round_trip(void **state)
{
    static const struct {
        int field;
        double value;
        const char *text;
    } cases[] = {
        { COUNT, 2, "2" },
        { COUNT, 1000000, "1000000" },
        { COUNT, 4294967295.0, "4294967295" },
        { WIDE, 1e15, "1000000000000000" },
        { WIDE, 9007199254740991.0, "9007199254740991" },
        { REAL, 0.1, "0.1" },
        { REAL, 1.0 / 3, "0.3333333333333333" },
        { REAL, -1.25, "-1.25" },
        { REAL, 2, "2" },
        { REAL, 1e-9, "1e-09" },
        { REAL, 0, "0" },
        { LARGE, 1090000, "1090000" },
        { LARGE, -1090001, "-1090001" },
        { LARGE, 999999999999999.0, "999999999999999" },
        { LARGE, 1e15, "1e+15" },
        { LARGE, 1090000.5, "1090000.5" },
        { LARGE, 1.25e300, "1.25e+300" },
    };
    char text[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct bell_field *f = table + cases[i].field;
        assert_int_equal(bell_field_set_number(f, &thing, cases[i].value, &error), BELL_OK);
        bell_field_text(f, &thing, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        set(cases[i].field, text, NULL);
        assert_true(bell_field_number(f, &thing) == cases[i].value);
    }
    srand(1);
    for (uint32_t i = 0; i < 2000; i++) {
        double v = (double)rand() / RAND_MAX * pow(10, rand() % 20 - 19);
        assert_int_equal(bell_field_set_number(table + REAL, &thing, v, &error), BELL_OK);
        bell_field_text(table + REAL, &thing, text, sizeof text);
        set(REAL, text, NULL);
        assert_true(thing.real == v);
    }
    bell_field_text(table + FLAG, &thing, text, sizeof text);
    assert_string_equal(text, "true");
    bell_field_text(table + CHOICE, &thing, text, sizeof text);
    assert_string_equal(text, "blue");
    set(NAME, "abc", NULL);
    bell_field_text(table + NAME, &thing, text, 3);
    assert_string_equal(text, "ab"); /* cut, and terminated */
}

/* A table in use: keys differ, defaults are in range and read back, help is a sentence. */
static void check_table(const struct bell_field *rows, void *object)
{
    bell_field_defaults(rows, object);
    for (const struct bell_field *f = rows; f->key; f++) {
        char text[64];
        assert_ptr_equal(bell_field_find(rows, f->key), f);
        assert_non_null(f->unit);
        assert_true(f->help && f->help[strlen(f->help) - 1] == '.');
        bell_field_text(f, object, text, sizeof text);
        if (bell_field_set_text(f, object, text, &error) != BELL_OK) fail_msg("%s", error.text);
        if (f->type == BELL_FIELD_U32 || f->type == BELL_FIELD_U64) {
            assert_int_equal(bell_field_set_number(f, object, f->min, &error), BELL_OK);
            assert_int_equal(bell_field_set_number(f, object, f->max, &error), BELL_OK);
            assert_true(bell_field_number(f, object) == f->max);
            assert_int_equal(bell_field_set_number(f, object, f->max + 1, &error), BELL_INVALID);
            assert_int_equal(bell_field_set_number(f, object, f->min - 1, &error), BELL_INVALID);
        }
        for (uint32_t i = 0; f->type == BELL_FIELD_ENUM && f->names[i]; i++) {
            assert_int_equal(bell_field_set_text(f, object, f->names[i], &error), BELL_OK);
            assert_true(bell_field_number(f, object) == i);
        }
    }
}

static void test_tables_in_use(void **state)
{
    struct bell_stack stack;
    struct bell_program program;
    (void)state;
    memset(&stack, 0, sizeof stack);
    memset(&program, 0, sizeof program);
    check_table(bell_stack_fields, &stack);
    check_table(bell_program_fields, &program);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, fresh)
    const struct CMUnitTest tests[] = {
        CASE(test_defaults_and_find), CASE(test_u32),     CASE(test_u64),        CASE(test_real),
        CASE(test_bool_enum_string),  CASE(test_numbers), CASE(test_round_trip), CASE(test_tables_in_use),
    };
    return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
