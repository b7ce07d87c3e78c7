/* SPDX-License-Identifier: Apache-2.0
 * Ask the CUDA driver and NVML, which are opened at run time so that the program starts where they are not installed.
 *
 * Names, attributes and codes: cuda.h of CUDA 13.0 (CUdevice_attribute), and the NVML API reference (nvmlClockType_t).
 */
#include "hw/doctor/probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum attribute {
    SM_COUNT = 16,
    PCI_BUS = 33,
    PCI_DEVICE = 34,
    PCI_DOMAIN = 50,
    SM_MAJOR = 75,
    SM_MINOR = 76,
    GPUDIRECT_RDMA = 116,
    DMA_BUF = 124
};

struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *out);
    int (*count)(int *out);
    int (*get)(int *device, int ordinal);
    int (*name)(char *out, int size, int device);
    int (*attribute)(int *out, int attribute, int device);
    int (*error)(int code, const char **text);
};

/* Function pointers come out of dlsym as object pointers; POSIX makes them the same. */
static bool symbol(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}

static bool open_driver(struct driver *d, struct bell_gpu_answers *out)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* kept: the driver does not like to be unloaded */
    if (!library) {
        (void)snprintf(out->why, sizeof out->why, "%s", dlerror());
        return false;
    }
    out->has_library = true;
    if (symbol(library, "cuInit", &d->init) && symbol(library, "cuDriverGetVersion", &d->version) &&
        symbol(library, "cuDeviceGetCount", &d->count) && symbol(library, "cuDeviceGet", &d->get) &&
        symbol(library, "cuDeviceGetName", &d->name) && symbol(library, "cuDeviceGetAttribute", &d->attribute) &&
        symbol(library, "cuGetErrorString", &d->error))
        return true;
    (void)snprintf(out->why, sizeof out->why, "libcuda.so.1 lacks functions of a CUDA driver");
    return false;
}

/* True when code is success; else *out says what failed. */
static bool worked(const struct driver *d, const char *call, int code, struct bell_gpu_answers *out)
{
    const char *text = NULL;
    if (code == 0) return true;
    (void)d->error(code, &text);
    (void)snprintf(out->why, sizeof out->why, "%s failed with code %d (%s)", call, code, text ? text : "no text");
    return false;
}

static int attribute_of(const struct driver *d, enum attribute attribute, int device, int otherwise)
{
    int value = 0;
    return d->attribute(&value, (int)attribute, device) == 0 ? value : otherwise;
}

static void ask_device(const struct driver *d, int device, struct bell_gpu_answer *gpu)
{
    int bus = attribute_of(d, PCI_BUS, device, -1), slot = attribute_of(d, PCI_DEVICE, device, -1);
    int domain = attribute_of(d, PCI_DOMAIN, device, -1);
    if (d->name(gpu->name, (int)sizeof gpu->name, device) != 0) gpu->name[0] = '\0';
    if (bus >= 0 && slot >= 0 && domain >= 0)
        (void)snprintf(gpu->address, sizeof gpu->address, "%04x:%02x:%02x.0", (unsigned)domain, (unsigned)bus & 0xff,
                       (unsigned)slot & 0xff);
    gpu->sms = attribute_of(d, SM_COUNT, device, 0);
    gpu->sm_version = 10 * attribute_of(d, SM_MAJOR, device, 0) + attribute_of(d, SM_MINOR, device, 0);
    gpu->has_gpudirect = attribute_of(d, GPUDIRECT_RDMA, device, -1);
    gpu->has_dma_buf = attribute_of(d, DMA_BUF, device, -1);
}

void bell_gpu_ask(struct bell_gpu_answers *out)
{
    struct driver d;
    int count = 0, device = 0;
    memset(out, 0, sizeof *out);
    (void)snprintf(out->nvml, sizeof out->nvml, "the CUDA driver gave no GPU");
    if (!open_driver(&d, out)) return;
    if (d.version(&out->version) != 0) out->version = 0;
    if (!worked(&d, "cuInit", d.init(0), out) || !worked(&d, "cuDeviceGetCount", d.count(&count), out)) return;
    for (int i = 0; i < count && out->gpus < BELL_GPUS_MAX; i++)
        if (worked(&d, "cuDeviceGet", d.get(&device, i), out)) ask_device(&d, device, &out->gpu[out->gpus++]);
    if (out->gpus) bell_nvml_ask(out);
}

/* ---- NVML ---- */

#define NVML_CLOCK_OF_SM 1 /* enum nvmlClockType_t */

void bell_nvml_ask(struct bell_gpu_answers *out)
{
    int (*init)(void), (*quit)(void);
    int (*find)(const char *address, void **device);
    int (*clock)(void *device, int which, unsigned *mhz), (*max_clock)(void *device, int which, unsigned *mhz);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)snprintf(out->nvml, sizeof out->nvml, "%s", dlerror());
        return;
    }
    out->nvml[0] = '\0';
    if (!symbol(library, "nvmlInit_v2", &init) || !symbol(library, "nvmlShutdown", &quit) ||
        !symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", &find) ||
        !symbol(library, "nvmlDeviceGetClockInfo", &clock) ||
        !symbol(library, "nvmlDeviceGetMaxClockInfo", &max_clock)) {
        (void)snprintf(out->nvml, sizeof out->nvml, "libnvidia-ml.so.1 lacks functions of NVML");
        (void)dlclose(library);
        return;
    }
    int code = init();
    if (code != 0) (void)snprintf(out->nvml, sizeof out->nvml, "nvmlInit_v2 failed with code %d", code);
    for (uint32_t i = 0; code == 0 && i < out->gpus; i++) {
        struct bell_gpu_answer *gpu = &out->gpu[i];
        void *device = NULL;
        unsigned now = 0, most = 0;
        int found = find(gpu->address, &device);
        if (found == 0 && clock(device, NVML_CLOCK_OF_SM, &now) == 0) gpu->clock_mhz = (int)now;
        if (found == 0 && max_clock(device, NVML_CLOCK_OF_SM, &most) == 0) gpu->max_clock_mhz = (int)most;
        if (!gpu->clock_mhz)
            (void)snprintf(out->nvml, sizeof out->nvml, "NVML does not tell the clock of %s", gpu->address);
    }
    if (code == 0) (void)quit();
    (void)dlclose(library);
}
