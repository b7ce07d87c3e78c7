/* SPDX-License-Identifier: Apache-2.0
 * The doctor on machines that are not there: trees of /sys, /proc and /dev made here, and what is found in them. */
#include "tests/unit/machine_tree.h"

static struct bell_findings found;

static int set_up(void **state)
{
    memset(&found, 0, sizeof found);
    return make_tree(state);
}

/* ---- looking at what was found ---- */

static void examine(void)
{
    struct bell_error err;
    assert_int_equal(bell_doctor(root, "13.0.88", &found, &err), BELL_OK);
    assert_int_equal(found.dropped, 0);
    for (uint32_t i = 0; i < found.count; i++) {
        const struct bell_finding *x = &found.item[i];
        assert_true(*x->name && *x->value);
        for (const char *c = x->value; *c; c++)
            assert_true((unsigned char)*c >= ' ');
    }
}

static const struct bell_finding *find(const char *area, const char *name)
{
    for (uint32_t i = 0; i < found.count; i++)
        if (strcmp(found.item[i].area, area) == 0 && strcmp(found.item[i].name, name) == 0) return &found.item[i];
    return NULL;
}

/* value and fix: texts that must be in them; fix NULL: nothing is to be done. */
static void expect_at(int line, const char *area, const char *name, enum bell_finding_state state, const char *value,
                      const char *fix)
{
    const struct bell_finding *x = find(area, name);
    if (!x) fail_msg("line %d: no finding '%s' in %s", line, name, area);
    if (x->state != state || !strstr(x->value, value) || (fix ? !strstr(x->fix, fix) : *x->fix))
        fail_msg("line %d: %s '%s' is %s: '%s' -> '%s'", line, area, name, bell_finding_state_name(x->state), x->value,
                 x->fix);
}
#define expect(area, name, state, value, fix) expect_at(__LINE__, area, name, BELL_FINDING_##state, value, fix)

static void expect_summary(const char *expected)
{
    char line[400];
    bell_doctor_summary(root, line, sizeof line);
    assert_string_equal(line, expected);
    assert_null(strpbrk(line, "\"\\\n"));
}

/* ---- one switch ---- */

#define SWITCH "pci0000:00/0000:00:01.0/0000:01:00.0"
#define GPU_OF_SWITCH SWITCH "/0000:02:00.0/0000:03:00.0"
#define NIC_OF_SWITCH SWITCH "/0000:02:01.0/0000:04:00.0"

static void put_switch(unsigned acs, size_t config_size)
{
    put_bridge("pci0000:00/0000:00:01.0", 0, config_size);
    put_bridge(SWITCH, 0, config_size);
    put_bridge(SWITCH "/0000:02:00.0", 0, config_size);
    put_bridge(SWITCH "/0000:02:01.0", acs, config_size);
    put_pci(GPU_OF_SWITCH, "0x030200\n", "0x10de\n", "0\n");
    put_pci(NIC_OF_SWITCH, "0x020700\n", "0x15b3\n", "0\n");
    put_rdma("mlx5_0", NIC_OF_SWITCH, "4: ACTIVE\n", "InfiniBand\n");
}

static void put_good_machine(unsigned acs, size_t config_size)
{
    put_switch(acs, config_size);
    put_driver(true);
    put("/proc/driver/nvidia/gpus/0000:03:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\n");
    put("/proc/driver/nvidia/params",
        "EnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\nRmMsg: \"\"\n");
    put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put("/proc/cmdline", "root=/dev/sda1 intel_iommu=on iommu=pt quiet\n");
    put("/sys/module/nvidia_peermem/refcnt", "0\n");
    put("/sys/module/ib_uverbs/refcnt", "0\n");
    put("/dev/infiniband/uverbs0", "");
    put("/dev/gdrdrv", "");
    put("/sys/class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
    put("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
    put("/sys/devices/system/cpu/cpufreq/policy0/affected_cpus", "0 1 2 3\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2500000\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4000000\n");
    put("/sys/kernel/iommu_groups/7/type", "identity\n");
    put_link("/sys/devices/" GPU_OF_SWITCH "/iommu_group", "/sys/kernel/iommu_groups/7");
    put_process("unlimited", "0000000000000000");
}

static void one_switch_with_acs(void **state)
{
    (void)state;
    put_good_machine(0x1d, 4096); /* SV, RR, CR, UF: what Linux turns on */
    examine();
    expect("gpu", "NVIDIA driver", OK, "580.159.04, open", NULL);
    expect("gpu", "GPU 0", OK, "NVIDIA H200 at PCI 0000:03:00.0", NULL);
    expect("gpu", "CUDA driver", UNKNOWN, "another machine's files", NULL);
    expect("gpu", "CUDA toolkit", OK, "13.0.88", NULL);
    expect("gpu", "PeerMappingOverride", OK, "set to 1", NULL);
    expect("gpu", "driver options", OK, "EnableStreamMemOPs=1", NULL);
    expect("gpu", "nvidia-peermem", OK, "loaded", NULL);
    expect("gpu", "GDRCopy", OK, "/dev/gdrdrv", NULL);
    expect("gpu", "dma-buf", UNKNOWN, "kernel and driver allow it", NULL);
    expect("gpu", "doorbell in GPU", UNKNOWN, "by doing it", NULL);
    expect("pcie", "GPU 0 to NICs", OK, "PIX (same switch): mlx5_0", NULL);
    expect("pcie", "ACS redirect", WARN, "on at 1 of 4 bridges", "setpci -s 0000:02:01.0 ECAP_ACS+0x6.w=0000");
    expect("pcie", "GPU 0 link", OK, "x16 at 32.0 GT/s", NULL);
    expect("pcie", "GPU 0 NUMA node", OK, "0, CPUs near it: 0-3", NULL);
    expect("pcie", "GPU 0 IOMMU", OK, "group 7, passed through", NULL);
    expect("pcie", "mlx5_0 IOMMU", OK, "no IOMMU group", NULL);
    expect("pcie", "IOMMU", OK, "in use; kernel command line: intel_iommu=on iommu=pt", NULL);
    expect("rdma", "mlx5_0", OK, "node type 1: CA, model MT4129, board MT_0000000838, firmware 28.39.1002", NULL);
    expect("rdma", "mlx5_0 port 1", OK, "4: ACTIVE, 400 Gb/sec (4X NDR), InfiniBand, 1 GID; use index 0: fe80:", NULL);
    expect("rdma", "mlx5_0 limits", UNKNOWN, "another machine's files", NULL);
    expect("cpu", "governor", OK, "performance", NULL);
    expect("cpu", "core clock", OK, "2500 MHz now (first CPU), 4000 MHz at most", NULL);
    expect("cpu", "CPUs allowed", OK, "0-5,8: 7 of 16 online", NULL);
    expect("cpu", "memlock limit", OK, "unlimited", NULL);
    assert_null(find("cpu", "runs in"));
    expect_summary("kernel 6.1.0-18-amd64; NVIDIA driver 580.159.04 (open); GPU NVIDIA H200; peermem loaded; dma-buf "
                   "possible; RDMA mlx5_0 firmware 28.39.1002; governor performance; CPUs allowed 0-5,8; memlock "
                   "unlimited");
}

static void one_switch_without_acs(void **state)
{
    (void)state;
    put_good_machine(0x11, 4096); /* neither request nor completion redirect */
    examine();
    expect("pcie", "ACS redirect", OK, "off at all 4 bridges", NULL);
}

static void acs_needs_root(void **state)
{
    (void)state;
    put_good_machine(0x1d, 64); /* what the kernel gives to others */
    examine();
    expect("pcie", "ACS redirect", UNKNOWN, "4 of 4 bridges is not readable", "as root");
}

/* ---- two sockets ---- */

static void two_sockets(void **state)
{
    (void)state;
    put_pci("pci0000:16/0000:16:01.0/0000:17:00.0", "0x030000\n", "0x10de\n", "0\n");
    put_pci("pci0000:97/0000:97:01.0/0000:98:00.0", "0x020000\n", "0x15b3\n", "1\n");
    put_pci("pci0000:30/0000:30:01.0/0000:31:00.0", "0x020000\n", "0x15b3\n", "0\n");
    put_pci("pci0000:16/0000:16:02.0/0000:18:00.0", "0x020000\n", "0x15b3\n", "0\n");
    put_pci("pci0000:16/0000:16:03.0/0000:19:00.0", "0x020000\n", "0x8086\n", "0\n"); /* no RDMA NIC */
    put_rdma("mlx5_0", "pci0000:97/0000:97:01.0/0000:98:00.0", "1: DOWN\n", "Ethernet\n");
    put_rdma("mlx5_1", "pci0000:30/0000:30:01.0/0000:31:00.0", "4: ACTIVE\n", "Ethernet\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gids/1", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/1", "RoCE v2\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/3", "RoCE v2\n");
    put("/sys/devices/pci0000:97/0000:97:01.0/0000:98:00.0/current_link_width", "8\n");
    put("/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0/current_link_speed", "2.5 GT/s PCIe\n");
    put("/sys/kernel/iommu_groups/31/type", "DMA-FQ\n");
    put_link("/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0/iommu_group", "/sys/kernel/iommu_groups/31");
    put_driver(false);
    put("/proc/driver/nvidia/params", "RegistryDwords: \"PeerMappingOverride=0\"\n");
    put("/proc/sys/kernel/osrelease", "5.4.0-150-generic\n");
    put("/sys/class/infiniband_verbs/abi_version", "6\n");
    put("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
    put("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "powersave\n");
    put("/sys/devices/system/cpu/cpufreq/policy2/affected_cpus", "2 3 4\n");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    put("/sys/fs/cgroup/kube/pod7/cpu.max", "250000 100000\n");
    put("/proc/self/cgroup", "0::/kube/pod7\n");
    put_process("67108864", "0000000000000000");
    examine();
    expect("gpu", "NVIDIA driver", OK, "535.104.05, proprietary", NULL);
    expect("gpu", "dma-buf", MISSING, "not possible; kernel before 5.12; proprietary kernel modules", "5.12 or later");
    expect("gpu", "nvidia-peermem", MISSING, "not loaded", "modprobe nvidia-peermem");
    expect("gpu", "GDRCopy", MISSING, "/dev/gdrdrv", "modprobe gdrdrv");
    expect("gpu", "PeerMappingOverride", WARN, "not set (RegistryDwords: PeerMappingOverride=0)",
           "NVreg_RegistryDwords=\"PeerMappingOverride=1;\"");
    expect("pcie", "GPU 0 to NICs", WARN,
           "PHB (through one host bridge): 0000:18:00.0; NODE (between host bridges of one NUMA node): mlx5_1; SYS "
           "(between NUMA nodes): mlx5_0",
           "another slot");
    expect("pcie", "GPU 0 link", WARN, "x16 at 2.5 GT/s PCIe, 32.0 GT/s PCIe at most", "under load");
    expect("pcie", "mlx5_0 link", WARN, "x8 of x16 lanes", "slot");
    expect("pcie", "GPU 0 IOMMU", WARN, "group 31, addresses are translated (DMA-FQ)", "iommu=pt");
    expect("rdma", "kernel modules", OK, "ib_uverbs is there", NULL);
    expect("rdma", "/dev/infiniband", MISSING, "no uverbs", "pass /dev/infiniband in");
    expect("rdma", "mlx5_0 port 1", MISSING, "1: DOWN", "ip link set DEV up");
    expect("rdma", "mlx5_1 port 1", OK, "3 GIDs; use index 3: 0000:0000:0000:0000:0000:ffff:0a00:0001 RoCE v2", NULL);
    expect("cpu", "governor", WARN, "powersave on 3 of 4 CPUs", "cpupower frequency-set -g performance");
    expect("cpu", "turbo", WARN, "off", "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo");
    expect("cpu", "CPU quota", WARN, "2.50 CPUs", "without a quota");
    expect("cpu", "memlock limit", WARN, "65536 KiB", "ulimit -l unlimited");
    assert_null(find("pcie", "0000:19:00.0 link"));
    expect_summary(
        "kernel 5.4.0-150-generic; NVIDIA driver 535.104.05; GPU not named; peermem not loaded; dma-buf not "
        "possible; RDMA mlx5_0 firmware 28.39.1002 and 1 more; governor powersave on 3 of 4 CPUs; CPUs allowed "
        "0-5,8; memlock 65536 KiB");
}

/* ---- bare, virtual, broken ---- */

static void bare(void **state)
{
    (void)state;
    examine();
    expect("gpu", "GPU", UNKNOWN, "/sys/bus/pci/devices cannot be read", NULL);
    expect("gpu", "NVIDIA driver", MISSING, "is not there", NULL);
    expect("rdma", "devices", MISSING, "names none", "rdma_rxe");
    expect("rdma", "kernel modules", MISSING, "ib_uverbs is not loaded", "modprobe ib_uverbs");
    expect("cpu", "kernel", UNKNOWN, "/proc/sys/kernel/osrelease is not there", NULL);
    expect("cpu", "governor", UNKNOWN, "no cpufreq", NULL);
    expect("cpu", "core clock", UNKNOWN, "neither", NULL);
    expect("cpu", "CPUs allowed", UNKNOWN, "/proc/self/status is not there", NULL);
    expect("cpu", "memlock limit", UNKNOWN, "/proc/self/limits is not there", NULL);
    assert_null(find("gpu", "dma-buf"));
    expect_summary("kernel unknown; no NVIDIA driver; no RDMA device; governor none; CPUs allowed unknown; memlock "
                   "unknown");
}

/* As an H200 of a virtual machine shows itself: no bridge, no NUMA node, modules without devices. */
static void a_gpu_in_a_virtual_machine(void **state)
{
    (void)state;
    put_pci("pci0000:00/0000:00:06.0", "0x030200\n", "0x10de\n", "-1\n");
    put_driver(true);
    put("/proc/driver/nvidia/params", "EnableStreamMemOPs: 0\nDmaRemapPeerMmio: 1\nRegistryDwords: \"\"\n");
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2445.424\nflags\t\t: fpu hypervisor\n");
    put("/sys/class/infiniband_verbs/abi_version", "6\n");
    put("/sys/module/mlx5_core/refcnt", "0\n");
    put("/dev/infiniband/rdma_cm", "");
    put_process("8388608", "000001fffeffffff");
    examine();
    expect("gpu", "GPU 0", OK, "NVIDIA GPU of unknown model at PCI 0000:00:06.0", NULL);
    expect("gpu", "PeerMappingOverride", WARN, "not set (RegistryDwords: none)", "modprobe.d");
    expect("gpu", "driver options", OK, "EnableStreamMemOPs=0, DmaRemapPeerMmio=1", NULL);
    expect("gpu", "doorbell in GPU", UNKNOWN, "with a ConnectX", NULL);
    expect("pcie", "GPU 0 NUMA node", UNKNOWN, "names none", NULL);
    expect("pcie", "ACS redirect", OK, "no bridge", NULL);
    expect("rdma", "kernel modules", OK, "seen: mlx5_core", NULL);
    expect("cpu", "runs in", WARN, "virtual machine", "host");
    expect("cpu", "core clock", OK, "2445.424 MHz", NULL);
    expect("cpu", "memlock limit", OK, "8192 KiB, but this user may pass it", NULL);
    assert_null(find("pcie", "GPU 0 to NICs"));
}

static void a_nic_without_its_driver(void **state)
{
    (void)state;
    put_pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x020700\n", "0x15b3\n", "0\n");
    examine();
    expect("gpu", "GPU", MISSING, "no NVIDIA GPU", "sim predicts");
    expect("rdma", "devices", MISSING, "though a NIC is on PCI", "modprobe mlx5_ib");
    expect("rdma", "kernel modules", MISSING, "not loaded", "modprobe ib_uverbs mlx5_ib");
    expect("pcie", "0000:01:00.0 link", OK, "x16", NULL);
}

static void dma_buf_needs_a_kernel(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        bool is_enough;
    } cases[] = { { "4.18.0\n", false }, { "5.11.22\n", false }, { "5.12.0-rc1\n", true }, { "6.1.0\n", true } };
    put_driver(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("/proc/sys/kernel/osrelease", cases[i].kernel);
        examine();
        assert_int_equal(bell_may_dma_buf(root), cases[i].is_enough);
        if (cases[i].is_enough)
            expect("gpu", "dma-buf", UNKNOWN, "kernel and driver allow it", NULL);
        else
            expect("gpu", "dma-buf", MISSING, "not possible; kernel before 5.12", "5.12 or later");
    }
}

/* Root of a user namespace has every capability there, and none that counts. */
static void memlock_in_a_user_namespace(void **state)
{
    (void)state;
    put_process("8388608", "000001ffffffffff");
    put("/proc/self/uid_map", "         0       1000          1\n");
    examine();
    expect("cpu", "memlock limit", WARN, "8192 KiB: RDMA pins", "ulimit -l unlimited");
    put("/proc/self/uid_map", "         0          0 4294967295\n");
    examine();
    expect("cpu", "memlock limit", OK, "may pass it", NULL);
}

static void nonsense_in_files(void **state)
{
    (void)state;
    put_pci("pci0000:00/0000:00:06.0", "0x030200\n", "0x10de\n", "many\n");
    put("/proc/driver/nvidia/version", "NVRM version: \001\002\n");
    put("/proc/driver/nvidia/params", "RegistryDwords:\n");
    put("/proc/sys/kernel/osrelease", "\"six\"\n");
    put("/sys/devices/pci0000:00/0000:00:06.0/current_link_width", "wide\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/proc/self/limits", "Max locked memory         many                 many                 bytes\n");
    put("/proc/self/status", "Cpus_allowed_list:\t\033[1m\"\\\n");
    put("/sys/devices/system/cpu/online", "0-15\n");
    put("/sys/class/infiniband/odd/ports/1/state", "4: AC\tTIVE\n");
    examine();
    expect("gpu", "NVIDIA driver", UNKNOWN, "names no version", NULL);
    expect("gpu", "dma-buf", UNKNOWN, "not readable", NULL);
    expect("pcie", "GPU 0 link", UNKNOWN, "holds no number", NULL);
    expect("cpu", "kernel", UNKNOWN, "osrelease", NULL);
    expect("cpu", "CPUs allowed", UNKNOWN, "[1m", NULL);
    expect("cpu", "memlock limit", UNKNOWN, "/proc/self/limits", NULL);
    expect("rdma", "odd", OK, "node type unknown, model not given, board not given, firmware not given", NULL);
    assert_null(find("cpu", "CPU quota"));
    expect_summary("kernel unknown; no NVIDIA driver; RDMA odd; governor none; CPUs allowed ?[1m??; memlock unknown");
}

static void a_summary_is_cut(void **state)
{
    (void)state;
    char line[12] = "before";
    put("/proc/sys/kernel/osrelease", "6.1.0\n");
    bell_doctor_summary(root, line, sizeof line);
    assert_string_equal(line, "kernel 6.1.");
    bell_doctor_summary(root, line, 1);
    assert_string_equal(line, "");
}

/* ---- answers of drivers ---- */

static struct bell_probe probe;

static void set_answers(void)
{
    memset(&probe, 0, sizeof probe);
    probe.root = root;
    probe.toolkit = "13.0.88";
    probe.cuda.has_library = true;
    probe.cuda.version = 13000;
    probe.cuda.gpus = 1;
    probe.cuda.gpu[0] = (struct bell_gpu_answer){ "NVIDIA H200", "0000:00:06.0", 132, 90, 1, 1, 345, 1980 };
    found.count = 0;
}

static void answers_of_cuda(void **state)
{
    (void)state;
    put_driver(true);
    set_answers();
    bell_doctor_gpu(&probe, &found);
    expect("gpu", "CUDA driver", OK, "CUDA 13.0", NULL);
    expect("gpu", "GPU 0", OK, "NVIDIA H200 at PCI 0000:00:06.0, sm_90, 132 SMs", NULL);
    expect("gpu", "GPU 0 SM clock", OK, "345 MHz now, 1980 MHz at most", "nvidia-smi -lgc 1980");
    expect("gpu", "GPU 0 GPUDirect RDMA", OK, "supported", NULL);
    expect("gpu", "dma-buf", OK, "exports", NULL);
    expect("gpu", "nvidia-peermem", OK, "not needed", NULL);

    set_answers();
    probe.cuda.version = 12080;
    probe.cuda.gpu[0].clock_mhz = 0;
    probe.cuda.gpu[0].has_dma_buf = 0;
    probe.cuda.gpu[0].has_gpudirect = 0;
    (void)snprintf(probe.cuda.nvml, sizeof probe.cuda.nvml, "no such library");
    bell_doctor_gpu(&probe, &found);
    expect("gpu", "CUDA driver", WARN, "CUDA 12.8, less than the toolkit's 13.0.88", "CUDA 12");
    expect("gpu", "GPU 0 SM clock", UNKNOWN, "no such library", NULL);
    expect("gpu", "GPU 0 GPUDirect RDMA", MISSING, "not supported", "data-center");
    expect("gpu", "dma-buf", MISSING, "not supported", "or nvidia-peermem");
    expect("gpu", "nvidia-peermem", MISSING, "not loaded", "modprobe");

    set_answers();
    probe.cuda.gpus = 0;
    probe.toolkit = "";
    (void)snprintf(probe.cuda.why, sizeof probe.cuda.why, "cuInit failed with code 999 (unknown error)");
    bell_doctor_gpu(&probe, &found);
    expect("gpu", "CUDA driver", MISSING, "cuInit failed with code 999", "nvidia-smi");
    expect("gpu", "CUDA toolkit", MISSING, "without one", "nvcc");
}

static void answers_of_verbs(void **state)
{
    (void)state;
    put_rdma("mlx5_0", "pci0000:00/0000:00:01.0", "4: ACTIVE\n", "InfiniBand\n");
    put_rdma("mlx5_1", "pci0000:00/0000:00:02.0", "2: INIT\n", "InfiniBand\n");
    set_answers();
    probe.rdma.devices = 2;
    probe.rdma.device[0] =
        (struct bell_rdma_answer){ "mlx5_0", true, "", 131072, 32768, 30, 4194303, "within one NIC", 828 };
    probe.rdma.device[1] =
        (struct bell_rdma_answer){ "mlx5_1", false, "ibv_open_device failed: no access", 0, 0, 0, 0, NULL, -1 };
    bell_doctor_rdma(&probe, &found);
    expect("rdma", "mlx5_0 limits", OK,
           "131072 queue pairs, 32768 work requests each, 30 SGEs, 4194303 CQEs a CQ, inline 828 B, atomics within one "
           "NIC",
           NULL);
    expect("rdma", "mlx5_1 limits", UNKNOWN, "no access", "/dev/infiniband/uverbs*");
    expect("rdma", "mlx5_1 port 1", MISSING, "2: INIT", "subnet manager");
    expect("rdma", "mlx5_0 port 1", MISSING, "0 GIDs", "address");
}

/* ---- distance ---- */

static struct bell_pci device_at(const char *chain, int64_t numa)
{
    struct bell_pci d;
    memset(&d, 0, sizeof d);
    d.numa = numa;
    for (const char *c = chain; *c; c += strspn(c, " ")) {
        size_t n = strcspn(c, " ");
        (void)snprintf(d.chain[d.depth++], sizeof d.chain[0], "%.*s", (int)n, c);
        c += n;
    }
    return d;
}

static void distances(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int64_t numa_a, numa_b;
        const char *path;
    } cases[] = {
        { "pci0 root up down1 gpu", "pci0 root up down2 nic", 0, 0, "PIX" },
        { "pci0 root gpu", "pci0 root nic", 0, 0, "PIX" }, /* two functions of one card */
        { "pci0 root up down1 up2 down2 gpu", "pci0 root up down3 nic", 0, 0, "PXB" },
        { "pci0 root up down1 gpu", "pci0 root up down2 up2 down3 nic", 0, 0, "PXB" },
        { "pci0 root1 gpu", "pci0 root2 nic", 0, 0, "PHB" },
        { "pci0 gpu", "pci0 nic", -1, -1, "PHB" },
        { "pci0 root gpu", "pci1 root nic", 0, 0, "NODE" },
        { "pci0 root gpu", "pci1 root nic", 0, 1, "SYS" },
        { "pci0 root gpu", "pci1 root nic", 0, -1, "?" },
        { "", "pci1 root nic", 0, 0, "?" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bell_pci a = device_at(cases[i].a, cases[i].numa_a), b = device_at(cases[i].b, cases[i].numa_b);
        assert_string_equal(bell_pci_path(&a, &b), cases[i].path);
        assert_string_equal(bell_pci_path(&b, &a), cases[i].path);
    }
}

/* CUDA's order may be another than that of the addresses, and it may hide some. */
static void numbers_of_gpus(void **state)
{
    (void)state;
    struct bell_pci_set set;
    put_pci("pci0000:00/0000:00:06.0", "0x030200\n", "0x10de\n", "0\n");
    put_pci("pci0000:00/0000:00:07.0", "0x030200\n", "0x10de\n", "0\n");
    put_pci("pci0000:00/0000:00:08.0", "0x030200\n", "0x10de\n", "0\n");
    bell_pci_scan(root, &set);
    assert_int_equal(set.gpus, 3);
    set_answers();
    bell_pci_name_gpus(&set, &(struct bell_gpu_answers){ 0 });
    assert_string_equal(set.gpu[2].name, "GPU 2");
    probe.cuda.gpus = 2;
    (void)snprintf(probe.cuda.gpu[0].address, sizeof probe.cuda.gpu[0].address, "0000:00:08.0");
    (void)snprintf(probe.cuda.gpu[1].address, sizeof probe.cuda.gpu[1].address, "0000:00:06.0");
    bell_pci_name_gpus(&set, &probe.cuda);
    assert_string_equal(set.gpu[0].name, "GPU 1");
    assert_string_equal(set.gpu[1].name, "0000:00:07.0");
    assert_string_equal(set.gpu[2].name, "GPU 0");
}

static void lists_of_cpus(void **state)
{
    (void)state;
    assert_int_equal(bell_cpus_in("0"), 1);
    assert_int_equal(bell_cpus_in("0-3,8"), 5);
    assert_int_equal(bell_cpus_in("0-127,256-383"), 256);
    assert_int_equal(bell_cpus_in(""), 0);
    assert_int_equal(bell_cpus_in("3-1"), 0);
    assert_int_equal(bell_cpus_in("0-3;8"), 0);
    assert_int_equal(bell_cpus_in("all"), 0);
}

static void more_findings_than_fit(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BELL_FINDINGS_MAX + 5; i++)
        bell_fix(bell_find(&found, "cpu", BELL_FINDING_OK, "x", "%u", i), "fix");
    assert_int_equal(found.count, BELL_FINDINGS_MAX - 1);
    assert_int_equal(found.dropped, 6);
    assert_string_equal(found.item[found.count - 1].value, "318");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, remove_tree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_switch_with_acs),
        CASE(one_switch_without_acs),
        CASE(acs_needs_root),
        CASE(two_sockets),
        CASE(bare),
        CASE(a_gpu_in_a_virtual_machine),
        CASE(a_nic_without_its_driver),
        CASE(dma_buf_needs_a_kernel),
        CASE(memlock_in_a_user_namespace),
        CASE(nonsense_in_files),
        CASE(a_summary_is_cut),
        CASE(answers_of_cuda),
        CASE(answers_of_verbs),
        CASE(distances),
        CASE(numbers_of_gpus),
        CASE(lists_of_cpus),
        CASE(more_findings_than_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
