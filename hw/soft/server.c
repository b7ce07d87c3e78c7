/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/soft/server.h"

#include "hw/soft/cores.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define VISITS_UNTIL_YIELD 64u /* looks at a queue that found nothing */
#define PERCENT_OF_A_LIMIT 90.0 /* a server that was busy for more of the time is called the limit of the run */
#define PERCENT_OF_A_CORE 90.0  /* one that had a core for less of the time says so */
#define PERCENT_LATE 10.0       /* stages that ran late by more of what a WQE takes are called out */

void bell_nic_server_init(struct bell_nic_server *server, struct bell_lane *lane, struct bell_nic_seat *seat,
                          uint32_t seats, const uint32_t *stop)
{
    memset(server, 0, sizeof *server);
    server->lane = lane;
    server->seat = seat;
    server->seats = seats;
    server->stop = stop;
    server->core = BELL_NIC_ANY_CORE;
}

enum bell_status bell_nic_server_open(struct bell_nic_server *server, const struct bell_pace *pace)
{
    server->paced_by = pace ? pace->name : NULL;
    server->pace_ps = pace ? pace->doorbell_ps + pace->fetch_ps + pace->payload_read_ps + pace->wire_ps + pace->ack_ps +
                                 pace->cqe_ps
                           : 0;
    for (uint32_t i = 0; i < server->seats; i++) {
        struct bell_nic_seat *seat = &server->seat[i];
        const struct bell_nicq *q = seat->nicq;
        if (!pace && !q->recover_ps && q->fault.kind != BELL_FAULT_LATE_CQE) continue;
        if (bell_pipe_open(&seat->pipe, pace, q->sq->depth) != BELL_OK) return BELL_NO_MEMORY;
        server->is_timed = true;
    }
    return BELL_OK;
}

void bell_nic_server_close(struct bell_nic_server *server)
{
    for (uint32_t i = 0; i < server->seats; i++)
        bell_pipe_close(server->seat[i].pipe);
}

static enum bell_status serve(struct bell_nic_server *server, struct bell_nic_seat *seat, uint64_t now_ps,
                              uint64_t *began_ps)
{
    struct bell_lane *lane = server->lane;
    struct bell_nicq *q = seat->nicq;
    struct bell_nic_work work;
    lane->id.lane = seat->lane;
    if (seat->pipe) return bell_pipe_turn(seat->pipe, lane, q, now_ps, &server->stats.wqes, &server->late);
    enum bell_status s = bell_nic_take(lane, q);
    if (s != BELL_OK) return s;
    if (*began_ps == 0) *began_ps = bell_port_now(lane);
    if (lane->soft->is_traced) lane->id.step_start_ps = bell_port_now(lane);
    while (bell_nic_fetch(lane, q, &work) == BELL_OK) {
        bell_nic_execute(lane, q, &work);
        bell_nic_complete(lane, q, &work);
        server->stats.wqes++;
    }
    return BELL_OK;
}

enum bell_status bell_nic_server_turn(struct bell_nic_server *server)
{
    enum bell_status turn = BELL_EMPTY;
    uint64_t began_ps = server->found_ps; /* busy without a break since then */
    uint64_t now_ps = server->is_timed ? bell_port_now(server->lane) : 0;
    if (began_ps == 0) began_ps = now_ps;
    server->found_ps = 0;
    for (uint32_t i = 0; i < server->seats; i++) {
        enum bell_status s = serve(server, server->seat + i, now_ps, &began_ps);
        if (bell_is_failure(s)) return s;
        if (s == BELL_OK) turn = BELL_OK;
    }
    if (turn == BELL_OK) {
        server->found_ps = bell_port_now(server->lane);
        server->stats.busy_ps += server->found_ps - began_ps;
    }
    return turn;
}

/* What the calling thread has had of a core. */
static uint64_t thread_cpu_ps(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) * 1000u;
}

enum bell_status bell_nic_server_run(struct bell_nic_server *server)
{
    enum bell_status s = BELL_OK;
    uint32_t visits = 0;
    if (server->core != BELL_NIC_ANY_CORE) server->is_bound = bell_core_bind(server->core);
    uint64_t began_ps = bell_port_now(server->lane), cpu_ps = thread_cpu_ps();
    while (!bell_is_failure(s) && !__atomic_load_n(server->stop, __ATOMIC_RELAXED)) {
        s = bell_nic_server_turn(server);
        visits = s == BELL_EMPTY ? visits + server->seats + 1 : 0;
        if (visits < VISITS_UNTIL_YIELD) continue;
        visits = 0;
        (void)sched_yield();
    }
    server->stats.span_ps = bell_port_now(server->lane) - began_ps;
    server->stats.cpu_ps = thread_cpu_ps() - cpu_ps;
    return bell_is_failure(s) ? s : BELL_OK;
}

/* Append to out[size]. */
static void add(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(out + used, size - used, format, arguments);
    va_end(arguments);
}

static void report_pace(const struct bell_nic_server *server, uint32_t count, char *out, size_t size)
{
    struct bell_lateness all;
    memset(&all, 0, sizeof all);
    for (uint32_t i = 0; i < count; i++) {
        all.total += server[i].late.total;
        for (uint32_t b = 0; b < BELL_LATE_BUCKETS; b++)
            all.count[b] += server[i].late.count[b];
    }
    double late_ps = (double)bell_lateness_median_ps(&all);
    add(out, size, "; paced as on %s, its stages ran %.3f us late (p50)%s", server->paced_by, late_ps * 1e-6,
        late_ps * 100 > PERCENT_LATE * (double)server->pace_ps ? ": IT DID NOT KEEP THE PACE" : "");
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t stale_of(const struct bell_nic_server *server)
{
    uint64_t stale = 0;
    for (uint32_t i = 0; i < server->seats; i++)
        stale += server->seat[i].nicq->stale;
    return stale;
}

void bell_nic_server_report(const struct bell_nic_server *server, uint32_t count, char *out, size_t size)
{
    struct bell_nic_stats sum = { 0, 0, 0, 0 };
    uint32_t unbound = 0;
    uint64_t stale = 0;
    double busiest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct bell_nic_stats *t = &server[i].stats;
        double busy = percent(t->busy_ps, t->span_ps);
        sum.wqes += t->wqes;
        stale += stale_of(&server[i]);
        sum.busy_ps += t->busy_ps;
        sum.span_ps += t->span_ps;
        sum.cpu_ps += t->cpu_ps;
        busiest = busy > busiest ? busy : busiest;
        unbound += server[i].core != BELL_NIC_ANY_CORE && !server[i].is_bound;
    }
    double rate = sum.busy_ps ? (double)sum.wqes / ((double)sum.busy_ps * 1e-12) * count * 1e-6 : 0;
    double core = percent(sum.cpu_ps, sum.span_ps);
    out[0] = '\0';
    add(out, size, "software NIC: %u thread%s, ", count, count == 1 ? "" : "s");
    if (sum.wqes == 0)
        add(out, size, "which completed no WQE");
    else if (busiest > PERCENT_OF_A_LIMIT)
        add(out, size,
            "the busiest %.0f %% of the time, all of them %.0f %%: THE SOFTWARE NIC IS THE BOTTLENECK, and the rate "
            "shown is its own (it could serve about %.3g M WQE/s at most); try more machine.nic_threads",
            busiest, percent(sum.busy_ps, sum.span_ps), rate);
    else
        add(out, size, "%.0f %% busy, could serve about %.3g M WQE/s%s", percent(sum.busy_ps, sum.span_ps), rate,
            core < PERCENT_OF_A_CORE ? "" : "; it is not the limit of this run");
    if (sum.wqes && core < PERCENT_OF_A_CORE)
        add(out, size, "; it had a core for only %.0f %% of the time, so others set its speed", core);
    if (server->paced_by) report_pace(server, count, out, size);
    if (stale)
        add(out, size, "; %" PRIu64 " of %" PRIu64 " WQES HAD NOT ARRIVED when they were read, and were read again: "
                       "a NIC would have failed them or carried out old ones", stale, sum.wqes);
    if (unbound) add(out, size, "; %u of %u could not be bound to a core of its own", unbound, count);
}
