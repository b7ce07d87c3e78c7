/* SPDX-License-Identifier: Apache-2.0
 * Bellwether's own queue code on the GPU (core/sq.h over hw/cuda/port), as cases of the rig.  One translation unit has
 * the CUDA port; the others see these functions only. */
#ifndef BELL_TESTS_DEVICE_OURS_H
#define BELL_TESTS_DEVICE_OURS_H

#include "tests/device/rig.h"

/* GPU memory for the indices of a queue; before and after all cases. */
void ours_open(void);
void ours_close(void);

/* rig_case.launch: one owner, ordering gpu-fence. */
void ours_launch_inline(const struct rig_case *c, const struct bell_device_queue *queue, const struct rig_post *post);
void ours_launch_pointer(const struct rig_case *c, const struct bell_device_queue *queue, const struct rig_post *post);

/* rig_case.check */
const char *ours_check(const struct rig_case *c);

#endif
