/* SPDX-License-Identifier: Apache-2.0
 * Findings about the GPU: driver, CUDA, clocks, and what lets GPU and NIC reach each other's memory. */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AREA "gpu"

/* The installation guides of NVSHMEM (for InfiniBand GPUDirect Async) and DeepEP ask for this line, and a reboot. */
#define MODPROBE_LINE "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\""

static void find_driver(const struct bell_probe *p, struct bell_findings *f)
{
    char version[40];
    bool is_open;
    const char *root = p->root;
    if (bell_nvidia_driver(root, version, &is_open)) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, "NVIDIA driver", "%s, %s kernel modules", version,
                        is_open ? "open" : "proprietary");
    } else if (bell_tree_has(root, "/proc/driver/nvidia/version")) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "NVIDIA driver",
                        "loaded, but /proc/driver/nvidia/version names no version that is known here");
    } else if (bell_has_module(root, "nouveau")) {
        bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, "NVIDIA driver", "the module nouveau drives the GPU instead"),
                 "install NVIDIA's driver (it keeps nouveau from loading) and reboot");
    } else {
        struct bell_finding *new = bell_find(f, AREA, BELL_FINDING_MISSING, "NVIDIA driver",
                                             "not loaded: /proc/driver/nvidia/version is not there");
        if (p->pci.gpus) bell_fix(new, "install NVIDIA's driver with the open kernel modules, then modprobe nvidia");
    }
}

static void find_cuda(const struct bell_probe *p, struct bell_findings *f)
{
    const struct bell_gpu_answers *c = &p->cuda;
    int major = c->version / 1000, minor = c->version % 1000 / 10, toolkit = 0;
    (void)sscanf(p->toolkit, "%d", &toolkit);
    if (!c->has_library) {
        bool is_asked = !*p->root;
        struct bell_finding *new =
            bell_find(f, AREA, is_asked ? BELL_FINDING_MISSING : BELL_FINDING_UNKNOWN, "CUDA driver", "%s", c->why);
        if (is_asked && p->pci.gpus)
            bell_fix(new, "libcuda.so.1 comes with NVIDIA's driver: install it, or pass it in");
    } else if (c->why[0]) {
        bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, "CUDA driver", "libcuda.so.1 is there, but %s", c->why),
                 "nvidia-smi must work first; in a container: start it with access to the GPUs");
    } else if (c->version && major < toolkit) {
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, "CUDA driver", "offers CUDA %d.%d, less than the toolkit's %s",
                           major, minor, p->toolkit),
                 "update the driver, or build with a toolkit of CUDA %d", major);
    } else if (c->version) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, "CUDA driver", "offers CUDA %d.%d", major, minor);
    } else {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "CUDA driver", "cuDriverGetVersion gave no version");
    }
    if (*p->toolkit)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "CUDA toolkit", "built with %s", p->toolkit);
    else
        bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, "CUDA toolkit", "this program was built without one"),
                 "have nvcc on PATH when cmake configures (it turns BELL_CUDA on)");
}

static void find_clock(const struct bell_probe *p, const char *name, const struct bell_gpu_answer *gpu,
                       struct bell_findings *f)
{
    char fact[40];
    (void)snprintf(fact, sizeof fact, "%.20s SM clock", name);
    if (!gpu->clock_mhz) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, fact, "NVML was not able to tell: %s", p->cuda.nvml);
    } else if (!gpu->max_clock_mhz) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, fact, "%d MHz now; NVML gives no maximum", gpu->clock_mhz);
    } else if (gpu->clock_mhz < gpu->max_clock_mhz) {
        bell_fix(bell_find(f, AREA, BELL_FINDING_OK, fact, "%d MHz now, %d MHz at most; it follows the load",
                           gpu->clock_mhz, gpu->max_clock_mhz),
                 "for runs that can be compared, lock it as root: nvidia-smi -lgc %d (undo: nvidia-smi -rgc)",
                 gpu->max_clock_mhz);
    } else {
        (void)bell_find(f, AREA, BELL_FINDING_OK, fact, "%d MHz now, which is its maximum", gpu->clock_mhz);
    }
}

/* GPUs that CUDA shows, in its order. */
static void find_cuda_gpus(const struct bell_probe *p, struct bell_findings *f)
{
    for (uint32_t i = 0; i < p->cuda.gpus; i++) {
        const struct bell_gpu_answer *gpu = &p->cuda.gpu[i];
        char name[40];
        (void)snprintf(name, sizeof name, "GPU %u", i);
        (void)bell_find(f, AREA, BELL_FINDING_OK, name, "%s at PCI %s, sm_%d, %d SMs",
                        gpu->name[0] ? gpu->name : "no name given", gpu->address[0] ? gpu->address : "unknown",
                        gpu->sm_version, gpu->sms);
        find_clock(p, name, gpu, f);
        (void)snprintf(name, sizeof name, "GPU %u GPUDirect RDMA", i);
        if (gpu->has_gpudirect < 0)
            (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "this driver does not know the attribute");
        else if (gpu->has_gpudirect == 0)
            bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, name, "the CUDA driver says: not supported"),
                     "a data-center or workstation GPU is needed, and no virtual GPU without it");
        else
            (void)bell_find(f, AREA, BELL_FINDING_OK, name, "the CUDA driver says: supported");
    }
}

/* GPUs that only files show. */
static void find_pci_gpus(const struct bell_probe *p, struct bell_findings *f)
{
    char model[64];
    for (uint32_t i = 0; i < p->pci.gpus; i++) {
        const struct bell_pci *gpu = &p->pci.gpu[i];
        bool has_model = bell_tree_field(p->root, "Model", model, sizeof model,
                                         "/proc/driver/nvidia/gpus/%s/information", gpu->address);
        (void)bell_find(f, AREA, BELL_FINDING_OK, gpu->name, "%s at PCI %s; CUDA was not able to say more",
                        has_model ? model : "NVIDIA GPU of unknown model", gpu->address);
    }
}

/* ---- what lets the NIC reach GPU memory ---- */

static void find_dma_buf(const struct bell_probe *p, bool *has_dma_buf, struct bell_findings *f)
{
    char version[40], kernel[80];
    int major, minor, attribute = p->cuda.gpus ? p->cuda.gpu[0].has_dma_buf : -1;
    bool is_open, has_driver = bell_nvidia_driver(p->root, version, &is_open);
    bool has_kernel = bell_kernel(p->root, &major, &minor, kernel);
    bool is_old = has_kernel && !bell_kernel_has_dma_buf(major, minor);
    *has_dma_buf = attribute > 0;
    if (attribute > 0) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, "dma-buf", "the CUDA driver exports GPU memory as dma-buf");
    } else if (attribute == 0 || is_old || (has_driver && !is_open)) {
        struct bell_finding *new = bell_find(f, AREA, BELL_FINDING_MISSING, "dma-buf", "%s%s%s",
                                             attribute == 0 ? "the CUDA driver says: not supported" : "not possible",
                                             is_old ? "; kernel before 5.12" : "",
                                             has_driver && !is_open ? "; proprietary kernel modules" : "");
        bell_fix(new,
                 "kernel 5.12 or later, the driver's open kernel modules and CUDA 11.7 or later; or nvidia-peermem");
    } else {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "dma-buf", "%s; only the CUDA driver can confirm it",
                        has_driver ? "kernel and driver allow it" : "the driver's version is not readable");
    }
}

static void find_peermem(const struct bell_probe *p, bool has_dma_buf, struct bell_findings *f)
{
    if (bell_has_peermem(p->root))
        (void)bell_find(f, AREA, BELL_FINDING_OK, "nvidia-peermem", "loaded");
    else if (has_dma_buf)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "nvidia-peermem", "not loaded; not needed where dma-buf is used");
    else
        bell_fix(
            bell_find(f, AREA, BELL_FINDING_MISSING, "nvidia-peermem",
                      "not loaded: a NIC cannot register GPU memory this way"),
            "modprobe nvidia-peermem (it comes with the driver; the RDMA modules must know peer memory, as those of "
            "DOCA-OFED do)");
}

static void find_gdrcopy(const struct bell_probe *p, struct bell_findings *f)
{
    if (bell_tree_has(p->root, "/dev/gdrdrv"))
        (void)bell_find(f, AREA, BELL_FINDING_OK, "GDRCopy", "/dev/gdrdrv is there");
    else
        bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, "GDRCopy",
                           "/dev/gdrdrv is not there; only paths where the CPU reads or writes GPU memory use it"),
                 "build github.com/NVIDIA/gdrcopy and modprobe gdrdrv; a GPU that rings by itself does without");
}

/* ---- what lets the GPU reach the NIC's doorbell ---- */

static void find_override(const struct bell_probe *p, struct bell_findings *f)
{
    char words[200];
    if (!bell_tree_field(p->root, "RegistryDwords", words, sizeof words, "/proc/driver/nvidia/params")) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "PeerMappingOverride", "/proc/driver/nvidia/params %s",
                        bell_tree_why());
        return;
    }
    /* The file has the value in quotes. */
    size_t length = strlen(words);
    if (length > 1 && words[0] == '"' && words[length - 1] == '"') {
        words[length - 1] = '\0';
        memmove(words, words + 1, length - 1);
    }
    static const char key[] = "PeerMappingOverride=";
    const char *at = strstr(words, key);
    if (at && strtoul(at + strlen(key), NULL, 0) == 1) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, "PeerMappingOverride", "set to 1 (RegistryDwords: %s)", words);
    } else {
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, "PeerMappingOverride",
                           "not set (RegistryDwords: %s); drivers that need it refuse to map a NIC's doorbell into the "
                           "GPU, and whether this one does only mapping one tells",
                           words[0] ? words : "none"),
                 "/etc/modprobe.d/nvidia.conf: %s, then update-initramfs -u and reboot", MODPROBE_LINE);
    }
}

/* Other options of the driver that people who debug this ask for first; shown as they are. */
static void find_options(const struct bell_probe *p, struct bell_findings *f)
{
    static const char *const keys[] = { "EnableStreamMemOPs", "DmaRemapPeerMmio", "GrdmaPciTopoCheckOverride",
                                        "EnablePCIERelaxedOrderingMode" };
    char value[64], line[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (bell_tree_field(p->root, keys[i], value, sizeof value, "/proc/driver/nvidia/params"))
            bell_append(line, sizeof line, &used, "%s%s=%s", used ? ", " : "", keys[i], value);
    if (used) (void)bell_find(f, AREA, BELL_FINDING_OK, "driver options", "%s", line);
}

static void find_uar(const struct bell_probe *p, struct bell_findings *f)
{
    bool has_mlx5 = false;
    for (uint32_t i = 0; i < p->pci.nics; i++)
        has_mlx5 |= strncmp(p->pci.nic[i].name, "mlx5", 4) == 0;
    (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "doorbell in GPU",
                    "whether the GPU may map a NIC's doorbell register can only be told %s",
                    has_mlx5 ? "by doing it (cuMemHostRegister, IOMEMORY): see executor mlx5"
                             : "with a ConnectX NIC and its driver mlx5 here");
}

void bell_doctor_gpu(const struct bell_probe *p, struct bell_findings *f)
{
    char version[40];
    bool is_open, has_dma_buf = false;
    bool has_driver = bell_nvidia_driver(p->root, version, &is_open);
    if (!p->pci.gpus && !p->cuda.gpus) {
        if (p->pci.is_readable)
            bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, "GPU", "no NVIDIA GPU on PCI"),
                     "cuda and a ringing GPU need one; sim predicts, soft and null run without");
        else
            (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "GPU", "/sys/bus/pci/devices cannot be read");
    }
    find_driver(p, f);
    find_cuda(p, f);
    if (!p->pci.gpus && !p->cuda.gpus && !has_driver) return; /* the rest is about a GPU */
    if (p->cuda.gpus)
        find_cuda_gpus(p, f);
    else
        find_pci_gpus(p, f);
    if (p->pci.gpus_seen > p->pci.gpus)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "more GPUs", "%u, not shown", p->pci.gpus_seen - p->pci.gpus);
    find_dma_buf(p, &has_dma_buf, f);
    find_peermem(p, has_dma_buf, f);
    find_gdrcopy(p, f);
    find_override(p, f);
    find_options(p, f);
    find_uar(p, f);
}
