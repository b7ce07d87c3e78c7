/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/soft/cores.h"

#include <pthread.h>
#include <sched.h>

enum bell_status bell_cores_choose(uint32_t first, uint32_t count, uint32_t *core, struct bell_error *err)
{
    cpu_set_t allowed;
    uint32_t found = 0;
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    for (uint32_t c = first; c < CPU_SETSIZE && found < count; c++)
        if (CPU_ISSET(c, &allowed)) core[found++] = c;
    return found == count ? BELL_OK
                          : bell_fail(err, BELL_UNSUPPORTED,
                                      "machine.pin: %u threads need a core each; from machine.first_core %u on, this "
                                      "process may use %u",
                                      count, first, found);
}

bool bell_core_bind(uint32_t core)
{
    cpu_set_t set;
    if (core >= CPU_SETSIZE) return false;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}
