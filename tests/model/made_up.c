/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/made_up.h"

struct bell_platform made_up(void)
{
    struct bell_platform p;
    bell_field_defaults(bell_platform_fields, &p);
    p.gpu_clock_mhz = 2000;
    p.cpu_cold_mhz = 2500;
    p.cpu_warm_mhz = 4000;
    p.gpu_post.cycles = 211;
    p.gpu_enqueue.cycles = 173;
    p.gpu_store.cycles = 11;
    p.gpu_segment.ps = 90001;
    p.gpu_drain.cycles = 127;
    p.gpu_host_drain.ps = 810001;
    p.gpu_fence_gpu.cycles = 431;
    p.gpu_fence_gpu_sc.cycles = 907;
    p.gpu_fence_sys.ps = 800003;
    p.gpu_fence_sys_sc.ps = 900007;
    p.gpu_atomic.cycles = 367;
    p.gpu_load.cycles = 293;
    p.gpu_host_load.ps = 870002;
    p.cpu_post.cycles = 2003;
    p.cpu_complete.cycles = 941;
    p.cpu_post.ps = 1009;
    p.pcie_gpu_read_ps = 600006;
    p.pcie_host_read_ps = 520010;
    p.nic_schedule_ps = 700027;
    p.nic_dc_ps = 150041;
    p.wire_transmit_ps = 640007;
    p.wire_ack_ps = 590021;
    p.wire_gbps = 200;
    return p;
}
