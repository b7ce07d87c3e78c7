/* SPDX-License-Identifier: Apache-2.0
 * The executor table: what can run a program, and how it is asked to. */
#ifndef BELL_CORE_EXEC_H
#define BELL_CORE_EXEC_H

#include "core/machine.h"
#include "core/program.h"

BELL_EXTERN_C_BEGIN

struct bell_platform; /* models/platform.h; only the simulator looks inside */

/* What a NIC in real time takes for each stage, in picoseconds of the monotonic clock: the stages' delays add up for
 * one WQE, and many WQEs are under way at once. */
struct bell_pace {
    const char *name;         /* of the platform, for people */
    uint64_t doorbell_ps;     /* doorbell stored to doorbell at the NIC */
    uint64_t fetch_ps;        /* WQE scheduled and read */
    uint64_t payload_read_ps; /* where the payload is not inline */
    uint64_t wire_ps;         /* to the peer's memory */
    uint64_t ack_ps;          /* and back */
    uint64_t cqe_ps;          /* CQE written */
    uint64_t per_wqe_ps;      /* of a queue: least time between the starts of two WQEs */
    uint64_t per_kib_ps;      /* of a queue: the same for each 1024 B of payload */
};

/* What to run.  Everything is the caller's and outlives the call. */
struct bell_run {
    const struct bell_program *program;
    const struct bell_stack *stack;
    const struct bell_platform *platform; /* NULL for executors in real time */
    const struct bell_sink *sink;         /* NULL: a timed run, nothing is traced */
    uint64_t bound_ps;                    /* of each wait, in the executor's clock */
    const struct bell_machine *machine;   /* NULL: bell_machine_fields' initial values */
    const struct bell_pace *pace;         /* of the software NIC; NULL: as fast as it can */
};

/* issue_ps and total_ps are the caller's, bell_program_counted * iterations each, filled lane by lane for rank 0. */
struct bell_result {
    uint64_t *issue_ps; /* time in the put calls of an operation */
    uint64_t *total_ps; /* until completion, or until the answer */
    uint64_t span_ps; /* of the whole run, in the executor's clock */
    uint64_t events;  /* sent to the sink */
    uint64_t puts;    /* of the lanes that post without waiting for each (bell_world_rate); 0: there are none */
    uint64_t puts_ps; /* what they took */
    char path[24];    /* which path really ran: "gpu-doorbell", "host-doorbell" or "proxy" */
    char processor[96]; /* what the lanes ran on, with its clock; "": nothing to add to what the caller knows */
    char notes[400];  /* for people, such as the software NIC's own service rate; "": none */
};

struct bell_executor {
    const char *name;
    const char *summary;
    const char *clock_domain; /* "virtual" or "monotonic" */
    /* BELL_OK, or BELL_UNSUPPORTED and why it cannot run here. */
    enum bell_status (*probe)(struct bell_error *err);
    /* Valid program and stack in, result out; on failure *err names lane, wait and indices. */
    enum bell_status (*run)(const struct bell_run *run, struct bell_result *result, struct bell_error *err);
};

extern const struct bell_executor bell_null_executor; /* hw/null: the floor; queues without a NIC's work */
extern const struct bell_executor bell_soft_executor; /* hw/soft: CPU threads and a software NIC */
extern const struct bell_executor bell_sim_executor;  /* sim: SimGrid */
/* Always there; where one was not built, its probe says what was missing (hw/absent). */
extern const struct bell_executor bell_cuda_executor;  /* hw/cuda: GPU threads and a software NIC */
extern const struct bell_executor bell_verbs_executor; /* hw/verbs: CPU threads and libibverbs */
extern const struct bell_executor bell_mlx5_executor;  /* hw/mlx5: our own queues on a ConnectX */

BELL_EXTERN_C_END

#endif
