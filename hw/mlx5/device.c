/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/mlx5/device.h"

#include <string.h>

enum bell_status bell_mlx5_command_failed(const struct bell_mlx5_device *device, const uint8_t *in, const uint8_t *out,
                                          int failure, struct bell_error *err)
{
    uint32_t status = (uint32_t)bell_prm_get(out, BELL_PRM_STATUS);
    return bell_fail(err, BELL_IO, "%s: %s failed: %s; status 0x%02x (%s), syndrome 0x%08x", device->name,
                     bell_prm_opcode_text((uint32_t)bell_prm_get(in, BELL_PRM_OPCODE)), strerror(failure), status,
                     bell_prm_status_text(status), (uint32_t)bell_prm_get(out, BELL_PRM_SYNDROME));
}

enum bell_status bell_mlx5_call_failed(const struct bell_mlx5_device *device, const char *what, int failure,
                                       struct bell_error *err)
{
    return bell_fail(err, BELL_IO, "%s: %s: %s", device->name, what, strerror(failure));
}

static enum bell_status read_caps(struct bell_mlx5_device *d, struct bell_error *err)
{
    uint8_t in[BELL_PRM_QUERY_HCA_CAP_IN] = { 0 }, out[BELL_PRM_QUERY_HCA_CAP_OUT] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_OPCODE, BELL_PRM_QUERY_HCA_CAP);
    (void)bell_prm_set(in, BELL_PRM_OP_MOD, BELL_PRM_CAP_GENERAL_CURRENT);
    int failure = d->calls->command(d->handle, in, sizeof in, out, sizeof out);
    if (failure)
        return bell_mlx5_command_failed(d, in, out, failure, err);
    uint32_t version = (uint32_t)bell_prm_get(out, BELL_PRM_CAP_CQE_VERSION);
    if (version != 1)
        return bell_fail(err, BELL_UNSUPPORTED, "%s writes CQEs of version %u; expected 1", d->name, version);
    if (!bell_prm_get(out, BELL_PRM_CAP_CQ_OI))
        return bell_fail(err, BELL_UNSUPPORTED, "%s has no CQs that ignore overrun (capability cq_oi), and nobody here "
                                                "moves a CQ's consumer counter", d->name);
    d->log_max_sq = (uint32_t)bell_prm_get(out, BELL_PRM_CAP_LOG_MAX_QP_SZ);
    d->log_max_cq = (uint32_t)bell_prm_get(out, BELL_PRM_CAP_LOG_MAX_CQ_SZ);
    d->has_dc = bell_prm_get(out, BELL_PRM_CAP_DCT) != 0;
    uint32_t log_register = (uint32_t)bell_prm_get(out, BELL_PRM_CAP_LOG_BF_REG_SIZE);
    /* The register is two halves that rdma-core uses in turn. */
    if (bell_prm_get(out, BELL_PRM_CAP_BF) && log_register)
        d->blueflame_bytes = 1u << (log_register - 1);
    return BELL_OK;
}

static enum bell_status set_up(struct bell_mlx5_device *d, uint32_t port, uint32_t gid, struct bell_error *err)
{
    enum bell_status s = read_caps(d, err);
    if (s != BELL_OK)
        return s;
    int failure = d->calls->port(d->handle, port, gid, &d->port);
    if (failure)
        return bell_fail(err, BELL_UNSUPPORTED, "%s: port %u is not active, or has no usable address: %s", d->name,
                         port, strerror(failure));
    failure = d->calls->eqn(d->handle, 0, &d->eqn);
    if (failure)
        return bell_mlx5_call_failed(d, "no event queue number for vector 0", failure, err);
    failure = d->calls->pd_alloc(d->handle, &d->pd, &d->pd_number);
    return failure ? bell_mlx5_call_failed(d, "no protection domain", failure, err) : BELL_OK;
}

enum bell_status bell_mlx5_device_open(struct bell_mlx5_device *device, const struct bell_mlx5_calls *calls,
                                       const char *name, uint32_t port, uint32_t gid, struct bell_error *err)
{
    memset(device, 0, sizeof *device);
    device->calls = calls;
    enum bell_status s = calls->open(calls->context, name, &device->handle, err);
    if (s != BELL_OK)
        return s;
    device->name = calls->name(device->handle);
    s = set_up(device, port, gid, err);
    if (s != BELL_OK)
        bell_mlx5_device_close(device);
    return s;
}

void bell_mlx5_device_close(struct bell_mlx5_device *device)
{
    if (device->pd)
        (void)device->calls->pd_free(device->pd);
    if (device->handle)
        device->calls->close(device->handle);
    memset(device, 0, sizeof *device);
}
