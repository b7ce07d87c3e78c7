/* SPDX-License-Identifier: Apache-2.0
 * Ask libibverbs for the limits of each RDMA device.  Its header is needed to build this, the library only to run it.
 */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <string.h>

#ifndef BELL_HAVE_VERBS_H

void bell_rdma_ask(struct bell_rdma_answers *out)
{
    memset(out, 0, sizeof *out);
    (void)snprintf(out->why, sizeof out->why, "this program was built without infiniband/verbs.h (libibverbs-dev)");
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>

struct verbs {
    struct ibv_device **(*list)(int *count);
    void (*free_list)(struct ibv_device **list);
    const char *(*name)(struct ibv_device *device);
    struct ibv_context *(*open)(struct ibv_device *device);
    int (*close)(struct ibv_context *context);
    int (*query)(struct ibv_context *context, struct ibv_device_attr *out);
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*free_pd)(struct ibv_pd *pd);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *user, struct ibv_comp_channel *channel,
                                int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
    int (*destroy_qp)(struct ibv_qp *qp);
};

/* Function pointers come out of dlsym as object pointers; POSIX makes them the same. */
static bool symbol(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}

static bool open_library(struct verbs *v, struct bell_rdma_answers *out)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL); /* kept: its providers stay loaded too */
    if (!library) {
        (void)snprintf(out->why, sizeof out->why, "%s", dlerror());
        return false;
    }
    if (symbol(library, "ibv_get_device_list", &v->list) && symbol(library, "ibv_free_device_list", &v->free_list) &&
        symbol(library, "ibv_get_device_name", &v->name) && symbol(library, "ibv_open_device", &v->open) &&
        symbol(library, "ibv_close_device", &v->close) && symbol(library, "ibv_query_device", &v->query) &&
        symbol(library, "ibv_alloc_pd", &v->alloc_pd) && symbol(library, "ibv_dealloc_pd", &v->free_pd) &&
        symbol(library, "ibv_create_cq", &v->create_cq) && symbol(library, "ibv_destroy_cq", &v->destroy_cq) &&
        symbol(library, "ibv_create_qp", &v->create_qp) && symbol(library, "ibv_destroy_qp", &v->destroy_qp))
        return true;
    (void)snprintf(out->why, sizeof out->why, "libibverbs.so.1 lacks functions that are needed");
    return false;
}

/* Bytes that a new queue pair takes inline, or -1 when it is refused with this many asked for. */
static int inline_of(const struct verbs *v, struct ibv_pd *pd, struct ibv_cq *cq, uint32_t ask)
{
    struct ibv_qp_init_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.cap.max_inline_data = ask;
    struct ibv_qp *qp = v->create_qp(pd, &attr);
    if (!qp) return -1;
    (void)v->destroy_qp(qp);
    return attr.cap.max_inline_data > ask ? (int)attr.cap.max_inline_data : (int)ask;
}

/* No attribute of a device says it, so ask for more and more: bisection, a queue pair a step. */
static int largest_inline(const struct verbs *v, struct ibv_context *context)
{
    struct ibv_pd *pd = v->alloc_pd(context);
    struct ibv_cq *cq = pd ? v->create_cq(context, 1, NULL, NULL, 0) : NULL;
    int least = cq ? inline_of(v, pd, cq, 0) : -1;
    for (int refused = 4096; least >= 0 && refused - least > 1;) {
        int ask = least + (refused - least) / 2, got = inline_of(v, pd, cq, (uint32_t)ask);
        if (got < 0)
            refused = ask;
        else
            least = got;
    }
    if (cq) (void)v->destroy_cq(cq);
    if (pd) (void)v->free_pd(pd);
    return least;
}

static void ask_device(const struct verbs *v, struct ibv_device *device, struct bell_rdma_answer *out)
{
    struct ibv_device_attr attr;
    (void)snprintf(out->name, sizeof out->name, "%s", v->name(device));
    out->max_inline = -1;
    errno = 0;
    struct ibv_context *context = v->open(device);
    if (!context) {
        (void)snprintf(out->why, sizeof out->why, "ibv_open_device failed: %s", strerror(errno));
        return;
    }
    int code = v->query(context, &attr);
    if (code != 0) {
        (void)snprintf(out->why, sizeof out->why, "ibv_query_device failed: %s", strerror(code));
    } else {
        out->is_open = true;
        out->max_qp = attr.max_qp;
        out->max_qp_wr = attr.max_qp_wr;
        out->max_sge = attr.max_sge;
        out->max_cqe = attr.max_cqe;
        out->atomics = attr.atomic_cap == IBV_ATOMIC_NONE  ? "none"
                       : attr.atomic_cap == IBV_ATOMIC_HCA ? "within one NIC"
                                                           : "global";
        out->max_inline = largest_inline(v, context);
    }
    (void)v->close(context);
}

void bell_rdma_ask(struct bell_rdma_answers *out)
{
    struct verbs v;
    int count = 0;
    memset(out, 0, sizeof *out);
    if (!open_library(&v, out)) return;
    errno = 0;
    struct ibv_device **list = v.list(&count);
    if (!list) {
        (void)snprintf(out->why, sizeof out->why, "ibv_get_device_list failed: %s", strerror(errno));
        return;
    }
    for (int i = 0; i < count && out->devices < BELL_NICS_MAX; i++)
        ask_device(&v, list[i], &out->device[out->devices++]);
    if (!out->devices) (void)snprintf(out->why, sizeof out->why, "libibverbs sees no RDMA device");
    v.free_list(list);
}

#endif
