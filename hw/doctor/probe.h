/* SPDX-License-Identifier: Apache-2.0
 * What the areas of the doctor share: answers of drivers' libraries, PCI devices, and adding a finding.
 *
 * Reading and judging are apart, so that tests can judge a machine that is not there: the calls below fill plain
 * structs, the areas turn those and the files under a root into findings. */
#ifndef BELL_HW_DOCTOR_PROBE_H
#define BELL_HW_DOCTOR_PROBE_H

#include "hw/doctor/doctor.h"
#include "hw/doctor/tree.h"

#define BELL_GPUS_MAX 16
#define BELL_NICS_MAX 32
#define BELL_PCI_DEPTH 20

/* ---- adding a finding ---- */

/* The new finding, "fix" empty; never NULL (when there is no room, one that is not counted). */
struct bell_finding *bell_find(struct bell_findings *f, const char *area, enum bell_finding_state state,
                               const char *name, const char *format, ...) BELL_FORMAT(5, 6);
void bell_fix(struct bell_finding *finding, const char *format, ...) BELL_FORMAT(2, 3);

/* Append by format; *used stays below size.  What does not fit is cut. */
void bell_append(char *out, size_t size, size_t *used, const char *format, ...) BELL_FORMAT(4, 5);

/* ---- PCI, from files ---- */

/* A GPU or NIC with its way to the processor: chain[0] is the host bridge ("pci0000:00"), the last is the device. */
struct bell_pci {
    char address[20]; /* "0000:1b:00.0" */
    char name[24];    /* of a NIC: "mlx5_0", or its address when it has no RDMA device; of a GPU: "GPU 0" */
    char chain[BELL_PCI_DEPTH][20];
    uint32_t depth; /* entries of chain; 0: not known */
    int64_t numa;   /* -1: not given */
};

struct bell_pci_set {
    struct bell_pci gpu[BELL_GPUS_MAX], nic[BELL_NICS_MAX];
    uint32_t gpus, nics;
    uint32_t gpus_seen, nics_seen; /* with those beyond the arrays */
    bool is_readable;              /* /sys/bus/pci/devices is there */
};

/* NVIDIA GPUs, and NICs that are Mellanox's or InfiniBand's or have an RDMA device.  GPUs are numbered in the order of
 * their addresses, which is CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID and may differ from its default. */
void bell_pci_scan(const char *root, struct bell_pci_set *out);

/* Number the GPUs as CUDA does, where it shows any; one that it does not show is called by its address. */
struct bell_gpu_answers;
void bell_pci_name_gpus(struct bell_pci_set *set, const struct bell_gpu_answers *cuda);

/* PIX, PXB, PHB, NODE or SYS, in the sense of `nvidia-smi topo -m`; "?" when it cannot be told. */
const char *bell_pci_path(const struct bell_pci *a, const struct bell_pci *b);

/* ---- libcuda and libnvidia-ml ---- */

struct bell_gpu_answer {
    char name[64];
    char address[20];
    int sms, sm_version;            /* 90 for sm_90; 0: not answered */
    int has_dma_buf, has_gpudirect; /* attributes; -1: not answered */
    int clock_mhz, max_clock_mhz;   /* SM clock; 0: not answered */
};

struct bell_gpu_answers {
    bool has_library;
    int version;    /* of CUDA that the driver offers, 1000 * major + 10 * minor; 0: not answered */
    char why[200];  /* what failed: no library, no cuInit; "" when all went well */
    char nvml[200]; /* the same for libnvidia-ml */
    struct bell_gpu_answer gpu[BELL_GPUS_MAX];
    uint32_t gpus;
};

/* Opens libcuda.so.1 and libnvidia-ml.so.1, and initialises both.  Never fails; *out says what did. */
void bell_gpu_ask(struct bell_gpu_answers *out);

/* The second half of it: clocks of out->gpu. */
void bell_nvml_ask(struct bell_gpu_answers *out);

/* ---- libibverbs ---- */

struct bell_rdma_answer {
    char name[64];
    bool is_open;
    char why[120]; /* why not */
    int max_qp, max_qp_wr, max_sge, max_cqe;
    const char *atomics; /* "none", "within one NIC", "global"; constant */
    int max_inline;      /* of a new RC queue pair, bytes; -1: not answered */
};

struct bell_rdma_answers {
    char why[200]; /* why there are none; "" when the library answered */
    struct bell_rdma_answer device[BELL_NICS_MAX];
    uint32_t devices;
};

/* Opens libibverbs.so.1 and each device.  Never fails; *out says what did. */
void bell_rdma_ask(struct bell_rdma_answers *out);

/* ---- areas ---- */

struct bell_probe {
    const char *root;
    const char *toolkit; /* CUDA toolkit this program was built with; "": none */
    struct bell_pci_set pci;
    struct bell_gpu_answers cuda;
    struct bell_rdma_answers rdma;
};

void bell_doctor_gpu(const struct bell_probe *p, struct bell_findings *f);
void bell_doctor_pcie(const struct bell_probe *p, struct bell_findings *f);
void bell_doctor_rdma(const struct bell_probe *p, struct bell_findings *f);
void bell_doctor_cpu(const struct bell_probe *p, struct bell_findings *f);

/* ---- facts that findings and the summary share ---- */

/* Version of the NVIDIA kernel driver, and whether it is the open one.  False: not loaded. */
bool bell_nvidia_driver(const char *root, char version[40], bool *is_open);

/* A module of the kernel is loaded or built in, as far as files show. */
bool bell_has_module(const char *root, const char *name);

/* Whether nvidia-peermem (or nv_peer_mem, its older name) is loaded. */
bool bell_has_peermem(const char *root);

/* Linux 5.12 or later, which RDMA's import of dma-buf came with (ib_umem_dmabuf_get). */
bool bell_kernel_has_dma_buf(int major, int minor);

/* Such a kernel and the open driver: what dma-buf export of GPU memory needs beside CUDA 11.7 (NVIDIA's GPUDirect RDMA
 * and GPU Operator guides). */
bool bell_may_dma_buf(const char *root);

/* Release of the kernel as numbers; false: not readable. */
bool bell_kernel(const char *root, int *major, int *minor, char text[80]);

/* RLIMIT_MEMLOCK, soft, in bytes; UINT64_MAX: none.  False: not readable.  With *has_cap (CAP_IPC_LOCK) it does not
 * bind the process. */
bool bell_memlock(const char *root, uint64_t *bytes, bool *has_cap);

/* "performance", or "powersave on 3 of 8 CPUs" when they differ; the frequency governor of the CPUs.  False: none. */
bool bell_governor(const char *root, char *out, size_t size);

/* How many CPUs a list like "0-3,8" names; 0 when it is none. */
uint32_t bell_cpus_in(const char *list);

#endif
