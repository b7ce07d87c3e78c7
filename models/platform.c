/* SPDX-License-Identifier: Apache-2.0 */
#include "models/platform.h"

static const char *const state_names[] = { "cold", "warm", NULL };

#define AT(member) offsetof(struct bell_platform, member)
#define REAL(key, member, unit, high, help)                                                                            \
    { key, BELL_FIELD_REAL, AT(member), unit, 0, high, 0, true, NULL, help }
#define CLOCK(key, member, help)                                                                                       \
    { key, BELL_FIELD_REAL, AT(member), "MHz", 1, 1e5, 1, true, NULL, help }
#define COST(key, member, help)                                                                                        \
    { key ".cycles", BELL_FIELD_REAL, AT(member.cycles), "cycles", 0, 1e8, 0, false, NULL, help },                     \
        { key ".ps", BELL_FIELD_REAL, AT(member.ps), "ps", 0, 1e12, 0, false, NULL, help }

const struct bell_field bell_platform_fields[] = {
    { "name", BELL_FIELD_STRING, AT(name), "", 0, 24, 0, true, NULL, "Of the platform." },
    CLOCK("gpu.clock_mhz", gpu_clock_mhz, "SM clock."),
    COST("gpu.post", gpu_post, "A put's address arithmetic and call, besides memory operations; for each WQE."),
    COST("gpu.enqueue", gpu_enqueue, "The same for a proxy descriptor."),
    COST("gpu.store", gpu_store, "Issue one store of up to 16 B."),
    COST("gpu.segment", gpu_segment, "Each 16 B of a WQE past the third, on top of its store."),
    COST("gpu.drain", gpu_drain, "What a fence waits for WQE stores on their way."),
    COST("gpu.host_drain", gpu_host_drain, "What a system fence waits for stores to queues in host memory."),
    COST("gpu.fence_gpu", gpu_fence_gpu, "fence.release.gpu; also inside a release store at that scope."),
    COST("gpu.fence_gpu_sc", gpu_fence_gpu_sc, "fence.sc.gpu, which is __threadfence()."),
    COST("gpu.fence_sys", gpu_fence_sys, "fence.release.sys; also inside a release store at that scope."),
    COST("gpu.fence_sys_sc", gpu_fence_sys_sc, "fence.sc.sys, which is __threadfence_system()."),
    COST("gpu.atomic", gpu_atomic, "Atomic on GPU memory."),
    COST("gpu.load", gpu_load, "Load of GPU memory past L1; also what a poll needs to notice."),
    COST("gpu.host_load", gpu_host_load, "Load of host memory by the GPU; half of it for a posted store."),
    CLOCK("cpu.cold_mhz", cpu_cold_mhz, "Clock of a proxy core that starts from idle."),
    CLOCK("cpu.warm_mhz", cpu_warm_mhz, "Clock of a proxy core that is kept busy."),
    { "cpu.state", BELL_FIELD_ENUM, AT(cpu_state), "", 0, 0, 0, false, state_names, "Which of the two clocks runs." },
    COST("cpu.post", cpu_post, "A worker, from the descriptor to the doorbell; for each WQE."),
    COST("cpu.complete", cpu_complete, "A worker, from the CQE to the completion counter."),
    REAL("cpu.stall_cold.ps", cpu_stall_cold_ps, "ps", 1e12, "Time a cold worker loses now and then."),
    REAL("cpu.stall_warm.ps", cpu_stall_warm_ps, "ps", 1e12, "Time a warm worker loses now and then."),
    REAL("cpu.stall_percent", cpu_stall_percent, "%", 100, "Of descriptors that meet a stall."),
    REAL("pcie.gpu_read.ps", pcie_gpu_read_ps, "ps", 1e9, "NIC reads GPU memory, round trip; half for a write."),
    REAL("pcie.host_read.ps", pcie_host_read_ps, "ps", 1e9, "NIC reads host memory, round trip; half for a write."),
    REAL("nic.schedule.ps", nic_schedule_ps, "ps", 1e9, "Doorbell seen to WQE fetch issued."),
    REAL("nic.dc.ps", nic_dc_ps, "ps", 1e9, "What DC adds in the NIC."),
    REAL("nic.cqe_order.ps", nic_cqe_order_ps, "ps", 1e9,
         "What a CQE, unlike payload, waits for before it is seen in GPU memory."),
    REAL("nic.queue_wqe.ps", nic_queue_wqe_ps, "ps", 1e9, "WQEs of one queue follow each other no faster."),
    REAL("nic.port_wqe.ps", nic_port_wqe_ps, "ps", 1e9, "Nor do those of all queues of a port."),
    REAL("wire.transmit.ps", wire_transmit_ps, "ps", 1e9, "WQE in hand to packet at the remote NIC."),
    REAL("wire.ack.ps", wire_ack_ps, "ps", 1e9, "Packet at the remote NIC to acknowledgement handled."),
    { "wire.gbps", BELL_FIELD_REAL, AT(wire_gbps), "Gb/s", 0.001, 1e5, 400, true, NULL, "Line rate." },
    { NULL, BELL_FIELD_BOOL, 0, "", 0, 0, 0, false, NULL, NULL },
};
