/* SPDX-License-Identifier: Apache-2.0
 * GPU events come in the GPU's clock and without numbers. */
#ifndef BELL_HW_CUDA_ORDER_H
#define BELL_HW_CUDA_ORDER_H

#include "hw/soft/crew.h"

/* Move GPU events to the host's clock, within what cause and effect allow, and number all events of the crew in the
 * order of time.  offset_ps: host's clock less the GPU's.  BELL_NO_MEMORY. */
enum bell_status bell_gpu_order(struct bell_soft_crew *crew, int64_t offset_ps, struct bell_error *err) BELL_MUST_USE;

#endif
