/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/soft/server.h"

#include "hw/soft/cores.h"

#include <stdio.h>

#define VISITS_UNTIL_YIELD 64u /* looks at a queue that found nothing */
#define PERCENT_OF_A_LIMIT 90u /* a server that was busy for more of the time is called the limit of the run */

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

static enum bell_status serve(struct bell_nic_server *server, struct bell_nic_seat *seat, uint64_t *began_ps)
{
    struct bell_lane *lane = server->lane;
    struct bell_nicq *q = seat->nicq;
    struct bell_nic_work work;
    lane->id.lane = seat->lane;
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
    server->found_ps = 0;
    for (uint32_t i = 0; i < server->seats; i++) {
        enum bell_status s = serve(server, server->seat + i, &began_ps);
        if (bell_is_failure(s)) return s;
        if (s == BELL_OK) turn = BELL_OK;
    }
    if (turn == BELL_OK) {
        server->found_ps = bell_port_now(server->lane);
        server->stats.busy_ps += server->found_ps - began_ps;
    }
    return turn;
}

enum bell_status bell_nic_server_run(struct bell_nic_server *server)
{
    enum bell_status s = BELL_OK;
    uint32_t visits = 0;
    if (server->core != BELL_NIC_ANY_CORE) server->is_bound = bell_core_bind(server->core);
    uint64_t began_ps = bell_port_now(server->lane);
    while (!bell_is_failure(s) && !__atomic_load_n(server->stop, __ATOMIC_RELAXED)) {
        s = bell_nic_server_turn(server);
        visits = s == BELL_EMPTY ? visits + server->seats + 1 : 0;
        if (visits < VISITS_UNTIL_YIELD) continue;
        visits = 0;
        (void)sched_yield();
    }
    server->stats.span_ps = bell_port_now(server->lane) - began_ps;
    return bell_is_failure(s) ? s : BELL_OK;
}

void bell_nic_server_report(const struct bell_nic_server *server, uint32_t count, char *out, size_t size)
{
    struct bell_nic_stats sum = { 0, 0, 0 };
    uint32_t unbound = 0;
    double busiest = 0, share;
    for (uint32_t i = 0; i < count; i++) {
        const struct bell_nic_stats *t = &server[i].stats;
        sum.wqes += t->wqes;
        sum.busy_ps += t->busy_ps;
        sum.span_ps += t->span_ps;
        share = t->span_ps ? 100.0 * (double)t->busy_ps / (double)t->span_ps : 0;
        busiest = share > busiest ? share : busiest;
        unbound += server[i].core != BELL_NIC_ANY_CORE && !server[i].is_bound;
    }
    const char *threads = count == 1 ? "thread" : "threads";
    int used;
    if (sum.wqes == 0 || sum.busy_ps == 0) {
        used = snprintf(out, size, "software NIC: %u %s, which saw no WQE", count, threads);
    } else {
        double rate = (double)sum.wqes / ((double)sum.busy_ps * 1e-12) * count * 1e-6;
        if (busiest > PERCENT_OF_A_LIMIT)
            used = snprintf(out, size,
                            "software NIC: %u %s, %.0f %% busy: THE SOFTWARE NIC IS THE BOTTLENECK, and the rate shown "
                            "is the software NIC's (about %.3g M WQE/s); try more machine.nic_threads",
                            count, threads, busiest, rate);
        else
            used = snprintf(out, size,
                            "software NIC: %u %s, %.0f %% busy, could serve about %.3g M WQE/s; it is not the limit "
                            "of this run", count, threads, 100.0 * (double)sum.busy_ps / (double)sum.span_ps, rate);
    }
    if (unbound && used > 0 && (size_t)used < size)
        (void)snprintf(out + used, size - (size_t)used, "; %u of %u could not be bound to a core of its own", unbound,
                       count);
}
