/* SPDX-License-Identifier: Apache-2.0 */
#include "core/machine.h"

#include <string.h>

static const char *const place_names[] = { "auto", "cpu", "gpu", NULL };

#define COUNT(key, member, low, high, first, help)                                                                     \
    { key, BELL_FIELD_U32, offsetof(struct bell_machine, member), "", low, high, first, false, NULL, help }
#define TEXT(key, member, help)                                                                                        \
    { key, BELL_FIELD_STRING, offsetof(struct bell_machine, member), "", 0, sizeof ((struct bell_machine *)0)->member, \
      0, false, NULL, help }

const struct bell_field bell_machine_fields[] = {
    COUNT("nic_threads", nic_threads, 1, 64, 1, "Threads of the software NIC, of each rank."),
    COUNT("nic_patience", nic_patience, 0, 1000000, 0,
          "How often the software NIC reads a WQE again that has not arrived; 0, as a NIC: it fails at once."),
    { "pin", BELL_FIELD_BOOL, offsetof(struct bell_machine, pin), "", 0, 1, 0, false, NULL,
      "Give each NIC thread, worker and CPU lane a core of its own." },
    COUNT("first_core", first_core, 0, 4095, 0, "The first of those cores."),
    { "nic", BELL_FIELD_ENUM, offsetof(struct bell_machine, nic), "", 0, 0, 0, false, place_names,
      "Software NIC on CPU threads or (executor cuda) on an SM of its own; auto: by queue memory." },
    { "poster", BELL_FIELD_ENUM, offsetof(struct bell_machine, poster), "", 0, 0, 0, false, place_names,
      "Executor mlx5: GPU threads or CPU threads are the lanes; auto: a GPU's where there is one." },
    COUNT("gpu", gpu, 0, 255, 0, "CUDA device of rank 0."),
    COUNT("peer_gpu", peer_gpu, 0, 255, 0, "CUDA device of rank 1."),
    COUNT("lanes_per_cta", lanes_per_cta, 1, 1024, 1, "GPU lanes that share a CTA."),
    TEXT("device", device, "RDMA device, such as mlx5_0; empty: the first that is usable."),
    COUNT("port", port, 1, 255, 1, "Port of that device."),
    COUNT("gid", gid, 0, BELL_GID_ANY, BELL_GID_ANY, "GID index; 65535: pick one (RoCE: the first IPv4-mapped)."),
    TEXT("peer", peer, "HOST:PORT of the process that is the other rank; empty: this process is both."),
    COUNT("rank", rank, 0, 1, 0, "Rank of this process when there is a peer: 0 listens, 1 connects."),
    { NULL, BELL_FIELD_BOOL, 0, "", 0, 0, 0, false, NULL, NULL },
};

void bell_machine_read(const struct bell_machine *given, struct bell_machine *out)
{
    if (given) {
        *out = *given;
        return;
    }
    memset(out, 0, sizeof *out);
    bell_field_defaults(bell_machine_fields, out);
}
