/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/mlx5/scene.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 64u
#define DC_KEY 0x42454c4c /* any number; both sides must have the same */

/* What the posters cannot do. */
static enum bell_status check_lanes(const struct bell_mlx5_ground *ground, const struct bell_run *run,
                                    struct bell_error *err)
{
    const struct bell_stack *stack = run->stack;
    if (stack->queue_memory == BELL_MEMORY_GPU && (!ground->site[0].gpu || !ground->site[1].gpu))
        return bell_fail(err, BELL_UNSUPPORTED,
                         "queue_memory=gpu: queues in GPU memory are for lanes on a GPU (machine.poster=gpu); "
                         "--set queue_memory=host runs the same stack on CPU threads");
    if (ground->lanes && stack->blueflame && stack->submit == BELL_SUBMIT_GPU)
        return bell_fail(err, BELL_UNSUPPORTED, "blueflame: a GPU lane rings with 8 B stores; expected "
                                                "blueflame=false or machine.poster=cpu");
    return ground->lanes ? ground->lanes->check(ground->lanes->context, run, err) : BELL_OK;
}

/* What a device and the posters cannot do is said before anything is made. */
static enum bell_status check(const struct bell_mlx5_ground *ground, const struct bell_run *run,
                              const struct bell_machine *machine, struct bell_error *err)
{
    if (machine->peer[0])
        return bell_fail(err, BELL_UNSUPPORTED, "machine.peer: executor mlx5 connects queues of one device in one "
                                                "process; executor verbs runs between two processes");
    if (run->sink)
        return bell_fail(err, BELL_UNSUPPORTED, "executor mlx5 writes no trace: deliveries and CQEs happen in the NIC, "
                                                "which notes nothing; leave -o out");
    if (run->program->first_index)
        return bell_fail(err, BELL_UNSUPPORTED, "first_index: the index of a new queue of a NIC starts at 0");
    char fault[32];
    bell_field_text(bell_field_find(bell_program_fields, "fault"), run->program, fault, sizeof fault);
    if (run->program->fault != BELL_FAULT_NONE && run->program->fault != BELL_FAULT_BAD_KEY)
        return bell_fail(err, BELL_UNSUPPORTED, "fault=%s: a NIC cannot be told to; fault=bad-key runs", fault);
    return check_lanes(ground, run, err);
}

static enum bell_status build_world(struct bell_mlx5_scene *scene, const struct bell_run *run, struct bell_error *err)
{
    size_t size = bell_world_size(run->program, &scene->stack);
    size_t whole = (size + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    scene->arena = aligned_alloc(LINE_BYTES, whole);
    if (!scene->arena || bell_world_build(&scene->world, run->program, &scene->stack, scene->arena, whole) != BELL_OK)
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: a world of %zu bytes", size);
    scene->world.has_device = true;
    return BELL_OK;
}

/* The keys that lanes and workers put into WQEs. */
static void hand_out_keys(struct bell_world *w)
{
    uint32_t bad = w->program->fault == BELL_FAULT_BAD_KEY;
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        struct bell_rank *r = w->rank + i;
        uint32_t rkey = w->rank[1 - i].target.key + bad;
        r->away.key = rkey;
        for (uint32_t lane = 0; lane < w->lanes; lane++) {
            r->client[lane].source.key = r->source.key;
            r->client[lane].target.key = rkey;
        }
    }
}

static enum bell_place place_of(uint32_t part)
{
    return part % 2 ? BELL_PLACE_TARGET : BELL_PLACE_SOURCE;
}

/* A CPU worker reads what it puts into a WQE itself, unless its descriptor carries that. */
static bool is_read_by_worker(const struct bell_run *run, uint32_t part)
{
    return part % 2 == 0 && run->stack->submit == BELL_SUBMIT_PROXY && run->stack->payload == BELL_PAYLOAD_INLINE
           && run->program->bytes > 8;
}

/* Sources and targets to the memory that the ground has for them, as they are. */
static enum bell_status place_payload(struct bell_mlx5_scene *scene, const struct bell_mlx5_ground *ground,
                                      const struct bell_run *run, struct bell_error *err)
{
    for (uint32_t i = 0; i < 2 * BELL_RANKS; i++) {
        const struct bell_mlx5_memory *m = ground->site[i / 2].payload;
        const struct bell_extent *e = &scene->world.place[i / 2][place_of(i)];
        struct bell_mlx5_payload *p = &scene->payload[i];
        if (!m || e->size == 0 || is_read_by_worker(run, i))
            continue;
        size_t whole = (e->size + m->page_bytes - 1) / m->page_bytes * m->page_bytes;
        int failure = m->alloc(m->context, whole, &p->block);
        if (failure)
            return bell_fail(err, BELL_NO_MEMORY, "%s: %zu bytes of %s memory for payload: %s", scene->device.name,
                             whole, m->kind == BELL_MEMORY_GPU ? "GPU" : "host", strerror(failure));
        p->memory = m;
        p->home = e->at;
        failure = m->write(m->context, &p->block, 0, e->at, e->size);
        if (failure)
            return bell_mlx5_call_failed(&scene->device, "payload memory could not be written", failure, err);
        bell_world_move(&scene->world, i / 2, place_of(i), (uint8_t *)(uintptr_t)p->block.address);
    }
    return BELL_OK;
}

enum bell_status bell_mlx5_scene_fetch(struct bell_mlx5_scene *scene, struct bell_error *err)
{
    for (uint32_t i = 0; i < 2 * BELL_RANKS; i++) {
        const struct bell_mlx5_payload *p = &scene->payload[i];
        if (!p->memory)
            continue;
        size_t size = scene->world.place[i / 2][place_of(i)].size;
        int failure = p->memory->read(p->memory->context, &p->block, 0, p->home, size);
        if (failure)
            return bell_mlx5_call_failed(&scene->device, "payload memory could not be read", failure, err);
        bell_world_move(&scene->world, i / 2, place_of(i), p->home);
    }
    return BELL_OK;
}

/* The whole block as a dma-buf, where its memory exports one and the device takes it; else the address. */
static int register_part(struct bell_mlx5_scene *scene, uint32_t part, const struct bell_region *r, uint32_t *lkey,
                         uint32_t *rkey)
{
    const struct bell_mlx5_device *d = &scene->device;
    const struct bell_mlx5_payload *p = &scene->payload[part];
    struct bell_mlx5_extent extent = { r->address, r->size_bytes, -1 };
    int fd = -1;
    if (p->memory && p->memory->dmabuf && p->memory->dmabuf(p->memory->context, &p->block, &fd) == 0) {
        struct bell_mlx5_extent whole = { p->block.address, p->block.bytes, fd };
        int refused = d->calls->mr_register(d->pd, &whole, &scene->mr[part], lkey, rkey);
        (void)close(fd);
        if (!refused)
            return 0;
        scene->mr[part] = NULL;
    }
    return d->calls->mr_register(d->pd, &extent, &scene->mr[part], lkey, rkey);
}

/* A region has one key: a source's is used as lkey, a target's as rkey. */
static enum bell_status register_memory(struct bell_mlx5_scene *scene, struct bell_error *err)
{
    const struct bell_mlx5_device *d = &scene->device;
    for (uint32_t i = 0; i < 2 * BELL_RANKS; i++) {
        struct bell_rank *rank = scene->world.rank + i / 2;
        struct bell_region *r = i % 2 ? &rank->target : &rank->source;
        uint32_t lkey = 0, rkey = 0;
        int failure = register_part(scene, i, r, &lkey, &rkey);
        bool is_gpu = scene->payload[i].memory && scene->payload[i].memory->kind == BELL_MEMORY_GPU;
        if (failure)
            return bell_mlx5_call_failed(d, is_gpu ? "payload in GPU memory could not be registered, neither as a "
                                                     "dma-buf nor through nvidia-peermem"
                                                   : "payload memory could not be registered",
                                         failure, err);
        r->key = i % 2 ? rkey : lkey;
    }
    hand_out_keys(&scene->world);
    return BELL_OK;
}

static enum bell_status open_targets(struct bell_mlx5_scene *scene, struct bell_error *err)
{
    const struct bell_mlx5_device *d = &scene->device;
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        int failure = d->calls->dct_create(d->pd, &d->port, DC_KEY, &scene->dct[i], &scene->dct_number[i]);
        if (failure)
            return bell_mlx5_call_failed(d, "no DC target", failure, err);
    }
    return BELL_OK;
}

static void close_queues(struct bell_mlx5_scene *scene)
{
    for (uint32_t i = BELL_RANKS * scene->queues; scene->queue && i-- > 0;)
        bell_mlx5_queue_close(scene->queue + i);
}

/* Where the queues of a rank live: a proxy's are its CPU workers'. */
static const struct bell_mlx5_memory *memory_of(const struct bell_stack *stack, const struct bell_mlx5_ground *ground,
                                                uint32_t rank)
{
    const struct bell_mlx5_site *site = &ground->site[rank];
    if (stack->submit == BELL_SUBMIT_PROXY)
        return ground->host;
    return stack->queue_memory == BELL_MEMORY_GPU ? site->gpu : site->host;
}

/* *is_refused: some poster cannot have its register. */
static enum bell_status try_queues(struct bell_mlx5_scene *scene, const struct bell_mlx5_ground *ground,
                                   bool *is_refused, struct bell_error *err)
{
    const struct bell_stack *stack = &scene->stack;
    struct bell_mlx5_want want = {
        .host = ground->host,
        .depth = stack->depth,
        .is_collapsed = stack->cq == BELL_CQ_COLLAPSED,
        .is_dc = stack->transport == BELL_TRANSPORT_DC,
        .may_blueflame = stack->blueflame,
        .must_host_ring = stack->doorbell == BELL_WRITER_HOST,
    };
    *is_refused = false;
    for (uint32_t i = 0; i < BELL_RANKS * scene->queues; i++) {
        want.memory = memory_of(stack, ground, i / scene->queues);
        enum bell_status s = bell_mlx5_queue_open(scene->queue + i, &scene->device, &want, err);
        if (s != BELL_OK)
            return s;
        *is_refused = *is_refused || (!want.must_host_ring && scene->queue[i].binding.ringer == BELL_RINGER_HOST);
    }
    return BELL_OK;
}

/* Where the register is refused to one poster, the host rings for all. */
static enum bell_status open_queues(struct bell_mlx5_scene *scene, const struct bell_mlx5_ground *ground,
                                    struct bell_error *err)
{
    bool is_refused = false;
    scene->queue = calloc((size_t)BELL_RANKS * scene->queues, sizeof *scene->queue);
    if (!scene->queue)
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: %u queues", BELL_RANKS * scene->queues);
    enum bell_status s = try_queues(scene, ground, &is_refused, err);
    if (s != BELL_OK || !is_refused)
        return s;
    close_queues(scene);
    scene->stack.doorbell = BELL_WRITER_HOST;
    s = bell_stack_validate(&scene->stack, err);
    return s == BELL_OK ? try_queues(scene, ground, &is_refused, err) : s;
}

static enum bell_status bind_queue(struct bell_mlx5_scene *scene, uint32_t rank, uint32_t queue,
                                   struct bell_error *err)
{
    struct bell_mlx5_queue *q = bell_mlx5_scene_queue(scene, rank, queue);
    uint32_t number = q->want.is_dc ? scene->dct_number[1 - rank]
                                    : bell_mlx5_scene_queue(scene, 1 - rank, queue)->binding.qpn;
    enum bell_status s = bell_mlx5_queue_connect(q, &scene->device.port, number, DC_KEY, err);
    if (s != BELL_OK)
        return s;
    q->binding.source = scene->world.rank[rank].source;
    q->binding.target = scene->world.rank[1 - rank].target;
    s = bell_binding_apply(&q->binding, scene->world.rank[rank].sq + queue);
    return s == BELL_OK ? s
                        : bell_fail(err, s, "%s: the binding of queue %u of rank %u cannot be posted to",
                                    scene->device.name, queue, rank);
}

static enum bell_status set_up(struct bell_mlx5_scene *scene, const struct bell_mlx5_ground *ground,
                               const struct bell_run *run, const struct bell_machine *machine, struct bell_error *err)
{
    scene->stack = *run->stack;
    scene->queues = run->program->queues;
    enum bell_status s =
        bell_mlx5_device_open(&scene->device, ground->calls, machine->device, machine->port, machine->gid, err);
    if (s == BELL_OK)
        s = open_queues(scene, ground, err);
    if (s == BELL_OK)
        s = build_world(scene, run, err); /* who rings is known now */
    if (s == BELL_OK)
        s = place_payload(scene, ground, run, err);
    if (s == BELL_OK)
        s = register_memory(scene, err);
    if (s == BELL_OK && scene->stack.transport == BELL_TRANSPORT_DC)
        s = open_targets(scene, err);
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS * scene->queues; i++)
        s = bind_queue(scene, i / scene->queues, i % scene->queues, err);
    return s;
}

enum bell_status bell_mlx5_scene_open(struct bell_mlx5_scene *scene, const struct bell_mlx5_ground *ground,
                                      const struct bell_run *run, struct bell_error *err)
{
    struct bell_machine machine;
    memset(scene, 0, sizeof *scene);
    bell_machine_read(run->machine, &machine);
    enum bell_status s = check(ground, run, &machine, err);
    if (s == BELL_OK)
        s = set_up(scene, ground, run, &machine, err);
    if (s != BELL_OK)
        bell_mlx5_scene_close(scene);
    return s;
}

void bell_mlx5_scene_close(struct bell_mlx5_scene *scene)
{
    const struct bell_mlx5_calls *calls = scene->device.calls;
    for (uint32_t i = BELL_RANKS; i-- > 0;)
        if (scene->dct[i])
            (void)calls->dct_destroy(scene->dct[i]);
    close_queues(scene); /* before the memory that their WQEs may still name */
    for (uint32_t i = 2 * BELL_RANKS; i-- > 0;)
        if (scene->mr[i])
            (void)calls->mr_release(scene->mr[i]);
    for (uint32_t i = 2 * BELL_RANKS; i-- > 0;)
        if (scene->payload[i].memory)
            scene->payload[i].memory->free(scene->payload[i].memory->context, &scene->payload[i].block);
    if (calls)
        bell_mlx5_device_close(&scene->device);
    free(scene->queue);
    free(scene->arena);
    memset(scene, 0, sizeof *scene);
}
