/* SPDX-License-Identifier: Apache-2.0
 * `--pace PLATFORM`: the software NIC takes for each stage what the model says of a platform. */
#include "tools/cli.h"

#include "models/cost.h"

enum bell_status bell_setup_read_pace(struct bell_setup *setup, const char *name, struct bell_error *err)
{
    const struct bell_executor *x = setup->executor;
    if (x != &bell_soft_executor && x != &bell_cuda_executor)
        return bell_fail(err, BELL_INVALID,
                         "--pace: executor %s has no software NIC that real time could pace, expected soft or cuda",
                         x->name);
    enum bell_status s = bell_setup_read(setup, BELL_PART_PLATFORM, name, err);
    setup->has_platform = false; /* time stays real */
    setup->has_pace = s == BELL_OK;
    return s;
}

/* As the simulator adds the stages up (sim/nic.c). */
void bell_setup_pace(const struct bell_setup *setup, struct bell_pace *pace)
{
    struct bell_costs c;
    const struct bell_stack *s = &setup->stack;
    bell_costs_of(&setup->platform, &c);
    uint64_t place_ps = c.nic_write_ps[BELL_MEMORY_GPU];
    pace->name = setup->platform.name;
    pace->doorbell_ps = c.doorbell_ps[s->submit == BELL_SUBMIT_PROXY ? BELL_ACTOR_CPU : BELL_ACTOR_GPU];
    pace->fetch_ps = c.schedule_ps + c.nic_read_ps[s->queue_memory];
    pace->payload_read_ps = c.nic_read_ps[BELL_MEMORY_GPU];
    pace->wire_ps = c.transmit_ps + (s->transport == BELL_TRANSPORT_DC ? c.dc_ps : 0) + place_ps;
    pace->ack_ps = c.ack_ps > place_ps ? c.ack_ps - place_ps : 0; /* it leaves when the packet arrives */
    pace->cqe_ps = c.cqe_ps[s->queue_memory];
    pace->per_wqe_ps = 0; /* the model has no message rate of a queue yet */
    pace->per_kib_ps = bell_cost_bytes_ps(&c, 1024);
}
