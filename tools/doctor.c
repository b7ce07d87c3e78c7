/* SPDX-License-Identifier: Apache-2.0
 * `bellwether doctor`: what this machine has for GPU-initiated RDMA, and which executors can run here. */
#include "hw/doctor/doctor.h"

#include "tools/cli.h"

#include <stdlib.h>
#include <string.h>

#ifndef BELL_CUDA_TOOLKIT
#define BELL_CUDA_TOOLKIT ""
#endif

#define EXECUTORS_MAX 16

static const struct bell_option options[] = { BELL_OPTION_OF_FORM, BELL_OPTIONS_END };

/* Whether an executor can run here, as a finding of area "executor". */
struct verdict {
    const char *name;
    bool can;
    char text[700];
};

static uint32_t judge(struct verdict verdict[EXECUTORS_MAX])
{
    uint32_t count = 0;
    for (const struct bell_executor *const *e = bell_executors; *e && count < EXECUTORS_MAX; e++) {
        struct verdict *v = &verdict[count++];
        struct bell_error why;
        why.text[0] = '\0';
        v->name = (*e)->name;
        v->can = (*e)->probe(&why) == BELL_OK;
        /* Said by itself a reason begins with its executor; here that is said already. */
        const char *reason = why.text;
        char prefix[40];
        int length = snprintf(prefix, sizeof prefix, "executor %.24s: ", v->name);
        if (strncmp(reason, prefix, (size_t)length) == 0) reason += length;
        (void)snprintf(v->text, sizeof v->text, v->can ? "can run: %s" : "cannot run, because %s",
                       v->can ? (*e)->summary : reason);
    }
    return count;
}

/* ---- text ---- */

static void print_line(const char *state, const char *name, const char *value, const char *fix)
{
    (void)printf("  %-8s %-22s  %s\n", state, name, value);
    if (*fix) (void)printf("  %-8s %-22s  -> %s\n", "", "", fix);
}

static void print_text(const struct bell_findings *f, const struct verdict *verdict, uint32_t verdicts)
{
    const char *area = "";
    for (uint32_t i = 0; i < f->count; i++) {
        const struct bell_finding *x = &f->item[i];
        if (strcmp(x->area, area) != 0) (void)printf("%s%s\n", *area ? "\n" : "", x->area);
        area = x->area;
        print_line(bell_finding_state_name(x->state), x->name, x->value, x->fix);
    }
    if (f->dropped) (void)printf("\n%u more facts are left out\n", f->dropped);
    (void)printf("\nexecutors\n");
    for (uint32_t i = 0; i < verdicts; i++)
        print_line(verdict[i].can ? "ok" : "missing", verdict[i].name, verdict[i].text, "");
    (void)printf(
        "\nmissing: a path that needs it cannot run; warn: slower, or not fit for comparison; unknown: not readable\n"
        "What each fact means for GPU-initiated RDMA: docs/doctor.md\n");
}

/* ---- json, csv ---- */

static enum bell_status print_table(enum bell_form form, const struct bell_findings *f, const struct verdict *verdict,
                                    uint32_t verdicts, struct bell_error *err)
{
    static const struct bell_column column[] = {
        { "area", false }, { "fact", false }, { "state", false }, { "value", false }, { "fix", false },
    };
    size_t rows = (size_t)f->count + verdicts;
    const char **cell = calloc(rows * 5, sizeof *cell), **at = cell;
    if (!cell) return bell_fail(err, BELL_NO_MEMORY, "doctor: out of memory");
    for (uint32_t i = 0; i < f->count; i++, at += 5) {
        const struct bell_finding *x = &f->item[i];
        const char *row[] = { x->area, x->name, bell_finding_state_name(x->state), x->value, x->fix };
        memcpy(at, row, sizeof row);
    }
    for (uint32_t i = 0; i < verdicts; i++, at += 5) {
        const char *row[] = { "executor", verdict[i].name, verdict[i].can ? "ok" : "missing", verdict[i].text, "" };
        memcpy(at, row, sizeof row);
    }
    bell_print_table(stdout, form, column, 5, cell, rows);
    free(cell);
    return BELL_OK;
}

static int run_doctor(int argc, char **argv)
{
    static struct bell_findings findings;
    static struct verdict verdict[EXECUTORS_MAX];
    struct bell_options o = { .form = BELL_FORM_TEXT };
    struct bell_error err;
    if (bell_parse(&bell_command_doctor, argc, argv, &o) < 0) return BELL_EXIT_USAGE;
    enum bell_status s = bell_doctor("", BELL_CUDA_TOOLKIT, &findings, &err);
    if (s == BELL_OK) {
        uint32_t verdicts = judge(verdict);
        if (o.form == BELL_FORM_TEXT)
            print_text(&findings, verdict, verdicts);
        else
            s = print_table((enum bell_form)o.form, &findings, verdict, verdicts, &err);
    }
    return s == BELL_OK ? BELL_EXIT_OK : bell_complain(&err);
}

const struct bell_command bell_command_doctor = {
    "doctor",
    "",
    "say what this machine has for GPU-initiated RDMA, what is missing, and which executors can run",
    "One line a fact, from /sys, /proc and the drivers' libraries, with the fix after -> where something is\n"
    "missing.  Nothing is changed.  Exits 0 whatever is found; as root it sees a little more (ACS).",
    0,
    0,
    options,
    run_doctor,
};
