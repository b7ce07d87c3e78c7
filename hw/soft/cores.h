/* SPDX-License-Identifier: Apache-2.0
 * Which cores threads may be bound to, and binding one to its core. */
#ifndef BELL_HW_SOFT_CORES_H
#define BELL_HW_SOFT_CORES_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

/* The first `count` cores numbered `first` or higher that this process may use, into core[count].  BELL_UNSUPPORTED:
 * there are not so many. */
enum bell_status bell_cores_choose(uint32_t first, uint32_t count, uint32_t *core, struct bell_error *err)
    BELL_MUST_USE;

/* Bind the calling thread.  False: the system does not let it. */
bool bell_core_bind(uint32_t core);

BELL_EXTERN_C_END

#endif
