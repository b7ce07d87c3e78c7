/* SPDX-License-Identifier: Apache-2.0
 * Which cores lanes and workers run on when machine.pin asks for one each. */
#ifndef BELL_HW_VERBS_CORES_H
#define BELL_HW_VERBS_CORES_H

#include "core/status.h"

/* The first `count` CPUs that this process may use into cpu[count]: from first_core on, or, when that is 0, those of
 * the NUMA node first (numa_node -1: not told).  BELL_UNSUPPORTED: there are fewer. */
enum bell_status bell_verbs_cores_pick(uint32_t first_core, int numa_node, uint32_t count, int *cpu,
                                       struct bell_error *err) BELL_MUST_USE;

/* "0-3,8,10-11" (as sysfs writes it): is cpu in it? */
bool bell_verbs_cores_list_has(const char *list, int cpu);

#endif
