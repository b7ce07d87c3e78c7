/* SPDX-License-Identifier: Apache-2.0
 * Timelines as bars, by gnuplot. */
#include "tools/waterfall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROW_PIXELS 24
#define FRAME_PIXELS 90

/* Bars of one operation: start, end, row from the top, colour class, label. */
static size_t write_bars(FILE *to, const struct bell_waterfall *w, size_t number)
{
    size_t row = 0;
    (void)fprintf(to, "$bars%zu << END\n", number);
    for (size_t i = 0; i < w->steps.count; i++) {
        const struct bell_step *s = w->steps.step + i;
        double start = (double)(s->event.start_ps - w->steps.start_ps) * 1e-6;
        if (s->event.duration_ps == 0)
            continue;
        (void)fprintf(to, "%.6f %.6f %zu %d \"%s (%s)\"\n", start, start + (double)s->event.duration_ps * 1e-6, row++,
                      s->is_critical ? 1 : 2, w->text[i].what, w->text[i].who);
    }
    (void)fprintf(to, "END\n");
    return row;
}

static void write_panel(FILE *to, const struct bell_waterfall *w, size_t number, size_t rows, double longest_us)
{
    (void)fprintf(to, "set title \"%s on %s: %s %.2f us\"\n", w->setup->stack.name, w->setup->platform.name,
                  bell_total_name(&w->setup->program), (double)w->steps.total_ps * 1e-6);
    (void)fprintf(to, "set xrange [0:%.6f]\nset yrange [%zu:-1]\n", longest_us * 1.02, rows);
    (void)fprintf(to,
                  "plot $bars%zu using (($1+$2)/2):3:(($2-$1)/2):(0.38):ytic(5) with boxxyerror fc rgb '#1f6fb4' "
                  "fs solid title 'critical path', \\\n"
                  "  $bars%zu using ($4==2?($1+$2)/2:1/0):3:(($2-$1)/2):(0.38) with boxxyerror fc rgb '#b9b9b9' "
                  "fs solid title 'not on it'\n", number, number);
}

static void write_script(FILE *to, const struct bell_waterfall *const *w, size_t count, const char *output)
{
    size_t rows[2] = { 0, 0 }, all = 0;
    double longest_us = 0;
    for (size_t i = 0; i < count; i++) {
        rows[i] = write_bars(to, w[i], i);
        all += rows[i];
        double total_us = (double)w[i]->steps.total_ps * 1e-6;
        longest_us = total_us > longest_us ? total_us : longest_us;
    }
    (void)fprintf(to,
                  "set terminal svg noenhanced size 1100,%zu font 'sans,13' background rgb 'white'\n"
                  "set output '%s'\n",
                  all * ROW_PIXELS + count * FRAME_PIXELS, output);
    (void)fprintf(to, "set xlabel 'microseconds (simulated)'\nset grid x\nset key top right\n"
                      "set lmargin 46\nset rmargin 4\n");
    if (count > 1)
        (void)fprintf(to, "set multiplot\n");
    double top = 1, whole = (double)(all * ROW_PIXELS + count * FRAME_PIXELS);
    for (size_t i = 0; i < count; i++) {
        double share = (double)(rows[i] * ROW_PIXELS + FRAME_PIXELS) / whole;
        top -= share;
        (void)fprintf(to, "set origin 0,%.4f\nset size 1,%.4f\n", top < 0 ? 0 : top, share);
        write_panel(to, w[i], i, rows[i], longest_us);
    }
    (void)fprintf(to, "%sset output\n", count > 1 ? "unset multiplot\n" : "");
}

enum bell_status bell_waterfall_plot(const struct bell_waterfall *const *w, size_t count, const char *path,
                                     struct bell_error *err)
{
    char draft[1100];
    if (strchr(path, '\'') || snprintf(draft, sizeof draft, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof draft)
        return bell_fail(err, BELL_INVALID, "%s: not a name that a plot can have", path);
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return bell_fail(err, BELL_IO, "%s: exists and is not a file", path);
    FILE *to = popen("gnuplot > /dev/null 2>&1", "w");
    if (!to)
        return bell_fail(err, BELL_IO, "gnuplot cannot be started: %s", strerror(errno));
    write_script(to, w, count, draft);
    int code = pclose(to);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 127)
        return bell_fail(err, BELL_UNSUPPORTED, "gnuplot is not installed (Debian package gnuplot-nox)");
    if (code != 0 || access(draft, R_OK) != 0) {
        (void)unlink(draft);
        return bell_fail(err, BELL_IO, "%s: gnuplot could not write it", path);
    }
    if (rename(draft, path) != 0) {
        (void)unlink(draft);
        return bell_fail(err, BELL_IO, "%s: %s", path, strerror(errno));
    }
    return BELL_OK;
}
