/* SPDX-License-Identifier: Apache-2.0
 * A platform for tests: no machine, and no two costs that sums could confuse.  Its clocks make whole picoseconds of
 * cycles: 500 ps on the GPU, 400 or 250 on the CPU. */
#ifndef BELL_TESTS_MADE_UP_H
#define BELL_TESTS_MADE_UP_H

#include "models/platform.h"

struct bell_platform made_up(void);

#endif
