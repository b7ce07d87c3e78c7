/* SPDX-License-Identifier: Apache-2.0
 * The doctor as a whole: reads, lets each area judge, and the small tools for both. */
#include "hw/doctor/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bell_finding_state_name(enum bell_finding_state state)
{
    static const char *const names[] = { "ok", "warn", "missing", "unknown" };
    return names[state];
}

/* What files and drivers give may hold anything; a finding is one line. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = ' ';
}

struct bell_finding *bell_find(struct bell_findings *f, const char *area, enum bell_finding_state state,
                               const char *name, const char *format, ...)
{
    bool is_full = f->count + 1 >= BELL_FINDINGS_MAX; /* the last is never counted */
    struct bell_finding *new = &f->item[is_full ? BELL_FINDINGS_MAX - 1 : f->count];
    f->count += !is_full;
    f->dropped += is_full;
    new->area = area;
    new->state = state;
    new->fix[0] = '\0';
    (void)snprintf(new->name, sizeof new->name, "%s", name);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(new->value, sizeof new->value, format, list);
    va_end(list);
    one_line(new->name);
    one_line(new->value);
    return new;
}

void bell_fix(struct bell_finding *finding, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(finding->fix, sizeof finding->fix, format, list);
    va_end(list);
    one_line(finding->fix);
}

void bell_append(char *out, size_t size, size_t *used, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(out + *used, size - *used, format, list);
    va_end(list);
    if (n > 0) *used = *used + (size_t)n < size ? *used + (size_t)n : size - 1;
}

enum bell_status bell_doctor(const char *root, const char *toolkit, struct bell_findings *out, struct bell_error *err)
{
    out->count = out->dropped = 0;
    struct bell_probe *p = calloc(1, sizeof *p);
    if (!p) return bell_fail(err, BELL_NO_MEMORY, "doctor: out of memory");
    p->root = root;
    p->toolkit = toolkit;
    bell_pci_scan(root, &p->pci);
    if (*root) {
        (void)snprintf(p->cuda.why, sizeof p->cuda.why, "these are another machine's files: its driver was not asked");
        (void)snprintf(p->cuda.nvml, sizeof p->cuda.nvml, "%s", p->cuda.why);
        (void)snprintf(p->rdma.why, sizeof p->rdma.why, "%s", p->cuda.why);
    } else {
        bell_gpu_ask(&p->cuda);
        bell_rdma_ask(&p->rdma);
        bell_pci_name_gpus(&p->pci, &p->cuda);
    }
    bell_doctor_gpu(p, out);
    bell_doctor_pcie(p, out);
    bell_doctor_rdma(p, out);
    bell_doctor_cpu(p, out);
    free(p);
    return BELL_OK;
}
