/* SPDX-License-Identifier: Apache-2.0
 * How results look: tables in three forms, and the numbers in them. */
#include "tools/cli.h"

#include <math.h>
#include <string.h>

uint64_t bell_percentile(const uint64_t *sorted, size_t count, double percent)
{
    double rank = ceil(percent / 100 * (double)count);
    size_t at = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[at < count ? at : count - 1];
}

void bell_us_text(uint64_t ps, char *out, size_t size)
{
    uint64_t ns = ps / 1000 + (ps % 1000 >= 500);
    (void)snprintf(out, size, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

void bell_print_json(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            (void)fprintf(to, "\\%c", *c);
        else if (*c < ' ' || *c == 127)
            (void)fprintf(to, "\\u%04x", *c);
        else
            (void)fputc(*c, to);
    }
    (void)fputc('"', to);
}

static void print_csv(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)fputs(text, to);
        return;
    }
    (void)fputc('"', to);
    for (; *text; text++)
        (void)fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    (void)fputc('"', to);
}

static void csv_table(FILE *to, const struct bell_column *column, size_t columns, const char *const *cell, size_t rows)
{
    for (size_t i = 0; i < columns; i++)
        (void)fprintf(to, "%s%s", i ? "," : "", column[i].name);
    (void)fputc('\n', to);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < columns; i++) {
            if (i) (void)fputc(',', to);
            print_csv(to, cell[r * columns + i]);
        }
        (void)fputc('\n', to);
    }
}

static void json_table(FILE *to, const struct bell_column *column, size_t columns, const char *const *cell, size_t rows)
{
    (void)fputc('[', to);
    for (size_t r = 0; r < rows; r++) {
        (void)fputs(r ? ",\n {" : "\n {", to);
        for (size_t i = 0; i < columns; i++) {
            const char *text = cell[r * columns + i];
            (void)fputs(i ? ", " : "", to);
            bell_print_json(to, column[i].name);
            (void)fputs(": ", to);
            if (column[i].is_number)
                (void)fputs(*text ? text : "null", to);
            else
                bell_print_json(to, text);
        }
        (void)fputc('}', to);
    }
    (void)fputs(rows ? "\n]\n" : "]\n", to);
}

/* Columns that a terminal shows: bytes of UTF-8 that do not continue a character. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void text_cell(FILE *to, const struct bell_column *column, const char *text, int width, bool is_last)
{
    int pad = width - width_of(text);
    if (column->is_number)
        (void)fprintf(to, "%*s%s", pad, "", text);
    else
        (void)fprintf(to, "%s%*s", text, is_last ? 0 : pad, "");
    (void)fputs(is_last ? "\n" : "  ", to);
}

static void text_table(FILE *to, const struct bell_column *column, size_t columns, const char *const *cell, size_t rows)
{
    int width[64];
    for (size_t i = 0; i < columns; i++) {
        width[i] = width_of(column[i].name);
        for (size_t r = 0; r < rows; r++) {
            int w = width_of(cell[r * columns + i]);
            width[i] = w > width[i] ? w : width[i];
        }
    }
    for (size_t i = 0; i < columns; i++)
        text_cell(to, column + i, column[i].name, width[i], i + 1 == columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < columns; i++)
            text_cell(to, column + i, cell[r * columns + i], width[i], i + 1 == columns);
}

void bell_print_table(FILE *to, enum bell_form form, const struct bell_column *column, size_t columns,
                      const char *const *cell, size_t rows)
{
    if (form == BELL_FORM_JSON)
        json_table(to, column, columns, cell, rows);
    else if (form == BELL_FORM_CSV)
        csv_table(to, column, columns, cell, rows);
    else
        text_table(to, column, columns, cell, rows);
}
