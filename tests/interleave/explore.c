/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleave/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "core/port.h"
#include "tests/interleave/memory.h"
#include "tests/interleave/table.h"

#define EXPLORE_DEPTH_MAX 400u
#define EXPLORE_LOG_MAX 4096u
#define EXPLORE_STACK_BYTES (64u * 1024)
#define EXPLORE_WAKES_MAX 4u

struct coroutine {
    struct bell_lane lane;
    const char *name;
    void (*run)(struct bell_lane *, void *);
    void *context;
    ucontext_t at;
    uint8_t *stack;
    uint64_t *log;     /* words that its steps and reads returned */
    uint32_t position; /* words of the log that the coroutine has seen */
    bool is_rewinding; /* runs over its log, and changes nothing */
    bool is_peeking;   /* the scheduler asks whether its wait is over */
    bool is_in_wait;   /* its loads are part of a step */
    bool is_waiting, has_ended;
    bool (*done)(struct bell_lane *, void *);
    void *done_context;
    const void *key;
    const char *waits_for;
};

/* The state at one depth of the schedule under way, and the step that left it. */
struct frame {
    struct explore_state state;
    struct explore_key key;
    struct explore_count schedules;
    uint32_t enabled, left; /* bit a lane: can run; not tried yet */
    uint32_t lane;
    const char *what;
    uint32_t place; /* UINT32_MAX: none */
    uint64_t value;
};

struct explore {
    struct explore_memory memory; /* first: its words are aligned */
    struct coroutine lane[EXPLORE_LANES_MAX];
    ucontext_t scheduler;
    struct frame *frame;
    uint32_t depth;
    struct explore_table table;
    struct explore_result result;
    const void *woken[EXPLORE_WAKES_MAX];
    uint32_t wakes;
    bool by_key;
    bool is_discarded; /* the step under way leads nowhere */
    bool has_failed;
    char failure[32 * 1024];
};

static struct coroutine *starting; /* makecontext passes integers only */

static struct coroutine *coroutine_of(struct bell_lane *lane)
{
    return &lane->explore->lane[lane->number];
}

/* ---- set-up ---- */

struct explore *explore_new(void)
{
    struct explore *x = aligned_alloc(64, (sizeof *x + 63) / 64 * 64);
    if (!x) return NULL;
    memset(x, 0, sizeof *x);
    x->frame = aligned_alloc(64, EXPLORE_DEPTH_MAX * sizeof *x->frame);
    if (!x->frame || !table_open(&x->table)) {
        explore_free(x);
        return NULL;
    }
    x->memory.places = 1; /* place 0 is nowhere */
    return x;
}

void explore_free(struct explore *x)
{
    for (uint32_t l = 0; l < EXPLORE_LANES_MAX; l++) {
        free(x->lane[l].stack);
        free(x->lane[l].log);
    }
    table_close(&x->table);
    free(x->frame);
    free(x);
}

void *explore_place(struct explore *x, const char *name, size_t bytes, uint32_t count, enum explore_kind kind)
{
    return memory_add(&x->memory, name, bytes, count, kind);
}

struct bell_lane *explore_lane(struct explore *x, const char *name, void (*run)(struct bell_lane *, void *),
                               void *context)
{
    uint32_t number = x->memory.lanes++;
    struct coroutine *c = &x->lane[number];
    c->name = name;
    c->run = run;
    c->context = context;
    c->lane.explore = x;
    c->lane.number = number;
    c->lane.id.group_size = 1;
    c->stack = malloc(EXPLORE_STACK_BYTES);
    c->log = malloc(EXPLORE_LOG_MAX * sizeof *c->log);
    if (!c->stack || !c->log) abort();
    return &c->lane;
}

void explore_wake_by_key(struct explore *x)
{
    x->by_key = true;
}

const void *explore_before(const struct explore *x, const void *at)
{
    const uint8_t *before = (const uint8_t *)x->frame[x->depth].state.memory;
    return before + ((const uint8_t *)at - (const uint8_t *)x->memory.now.memory);
}

const char *explore_failure(const struct explore *x)
{
    return x->failure;
}

/* ---- failure ---- */

__attribute__((format(printf, 3, 4))) static size_t say(struct explore *x, size_t used, const char *format, ...)
{
    va_list arguments;
    if (used >= sizeof x->failure) return used;
    va_start(arguments, format);
    int n = vsnprintf(x->failure + used, sizeof x->failure - used, format, arguments);
    va_end(arguments);
    return used + (n > 0 ? (size_t)n : 0);
}

/* Keeps the first failure, with the schedule that led to it. */
static void fail_with(struct explore *x, const char *text)
{
    if (x->has_failed) return;
    x->has_failed = true;
    size_t used = say(x, 0, "%s\nschedule:\n", text);
    for (uint32_t d = 0; d <= x->depth; d++) {
        const struct frame *f = &x->frame[d];
        if (f->what)
            used = say(x, used, "  %3u %s: %s %s %#llx\n", d, x->lane[f->lane].name, f->what,
                       f->place == UINT32_MAX ? "" : x->memory.place[f->place].name, (unsigned long long)f->value);
    }
    for (uint32_t l = 0; l < x->memory.lanes; l++)
        if (x->lane[l].is_waiting && !x->lane[l].has_ended)
            used = say(x, used, "  %s waits for %s\n", x->lane[l].name, x->lane[l].waits_for);
}

/* ---- coroutines ---- */

static void park(struct coroutine *c)
{
    (void)swapcontext(&c->at, &c->lane.explore->scheduler);
}

static void resume(struct explore *x, struct coroutine *c)
{
    (void)swapcontext(&x->scheduler, &c->at);
}

static void body(void)
{
    struct coroutine *c = starting;
    c->run(&c->lane, c->context);
    c->has_ended = true;
    for (;;)
        park(c);
}

static void start_lane(struct explore *x, struct coroutine *c, bool is_rewinding)
{
    (void)getcontext(&c->at);
    c->at.uc_stack.ss_sp = c->stack;
    c->at.uc_stack.ss_size = EXPLORE_STACK_BYTES;
    c->at.uc_link = NULL;
    c->is_rewinding = is_rewinding;
    c->is_waiting = c->is_in_wait = c->has_ended = false;
    c->position = 0;
    starting = c;
    makecontext(&c->at, body, 0);
    resume(x, c);
}

/* Bring the coroutine to where the current state has its lane. */
static void rewind_lane(struct explore *x, struct coroutine *c)
{
    if (c->position != x->memory.now.logged[c->lane.number]) start_lane(x, c, true);
}

static bool is_step(const struct explore_memory *m, uint32_t place)
{
    return m->place[place].kind != EXPLORE_DATA && m->place[place].kind != EXPLORE_FIXED;
}

/* A place where others may run, when it is a step.  False: it was taken before; its result is in the log. */
static bool enter(struct coroutine *c, bool is_a_step)
{
    const struct explore_state *now = &c->lane.explore->memory.now;
    if (c->is_rewinding && c->position < now->logged[c->lane.number]) return false;
    if (c->is_in_wait || !is_a_step) return true;
    park(c);
    return true;
}

static void put_log(struct coroutine *c, const void *bytes, size_t size)
{
    struct explore *x = c->lane.explore;
    struct explore_state *now = &x->memory.now;
    for (size_t done = 0; done < size; done += 8) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)bytes + done, size - done < 8 ? size - done : 8);
        if (c->position == EXPLORE_LOG_MAX) abort();
        c->log[c->position++] = word;
        now->seen[c->lane.number] = explore_mix(now->seen[c->lane.number], word);
    }
    now->logged[c->lane.number] = c->position;
}

static void get_log(struct coroutine *c, void *bytes, size_t size)
{
    for (size_t done = 0; done < size; done += 8)
        memcpy((uint8_t *)bytes + done, &c->log[c->position++], size - done < 8 ? size - done : 8);
}

/* What the report says of the step under way, and whether it was wrong. */
static void judge(struct coroutine *c, const char *what, uint32_t place, uint64_t value, const char *wrong)
{
    struct explore *x = c->lane.explore;
    struct frame *f = &x->frame[x->depth];
    if (!f->what) {
        f->what = what;
        f->place = place;
        f->value = value;
    }
    if (!wrong) return;
    char text[200];
    (void)snprintf(text, sizeof text, "%s: %s of %s: %s", c->name, what,
                   place == UINT32_MAX ? "?" : x->memory.place[place].name, wrong);
    fail_with(x, text);
}

static uint64_t first_word(const void *bytes, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, bytes, size < 8 ? size : 8);
    return word;
}

/* ---- steps ---- */

static void wake(struct explore *x, const void *key)
{
    if (key && x->wakes < EXPLORE_WAKES_MAX) x->woken[x->wakes++] = key;
}

void explore_load(struct bell_lane *lane, const char *what, void *to, const void *from, size_t size, bool acquire)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    uint32_t place = memory_place(m, from);
    if (c->is_peeking) {
        memcpy(to, from, size);
    } else if (!enter(c, is_step(m, place))) {
        get_log(c, to, size);
    } else {
        memcpy(to, from, size);
        put_log(c, to, size);
        judge(c, what, place, first_word(to, size), memory_load(m, lane->number, place, acquire));
    }
}

void explore_store(struct bell_lane *lane, const char *what, void *to, const void *from, size_t size, bool release,
                   const void *wakes)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    uint32_t place = memory_place(m, to);
    uint64_t nothing = 0;
    if (!enter(c, is_step(m, place))) {
        get_log(c, &nothing, sizeof nothing);
    } else {
        memcpy(to, from, size);
        put_log(c, &nothing, sizeof nothing);
        wake(lane->explore, wakes);
        judge(c, what, place, first_word(from, size), memory_store(m, lane->number, place, release));
    }
}

bool explore_cas(struct bell_lane *lane, uint64_t *word, uint64_t expected, uint64_t desired)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    uint32_t place = memory_place(m, word);
    uint64_t swapped = 0;
    if (!enter(c, true)) {
        get_log(c, &swapped, sizeof swapped);
        return swapped != 0;
    }
    swapped = *word == expected;
    put_log(c, &swapped, sizeof swapped);
    if (swapped) {
        *word = desired;
        wake(lane->explore, word);
        judge(c, "cas", place, desired, memory_swap(m, lane->number, place));
    } else {
        judge(c, "cas fails", place, *word, memory_load(m, lane->number, place, false));
    }
    return swapped != 0;
}

uint64_t explore_add(struct bell_lane *lane, uint64_t *word, uint64_t by)
{
    struct coroutine *c = coroutine_of(lane);
    uint64_t old = 0;
    if (!enter(c, true)) {
        get_log(c, &old, sizeof old);
        return old;
    }
    old = *word;
    *word += by; /* relaxed: what the word released before stays with it */
    put_log(c, &old, sizeof old);
    judge(c, "fetch_add", memory_place(&lane->explore->memory, word), *word, NULL);
    return old;
}

bool explore_arrive(struct bell_lane *lane, uint64_t *words, uint32_t size, uint64_t *turn)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    uint64_t seen[2];
    if (!enter(c, true)) {
        get_log(c, seen, sizeof seen);
    } else {
        uint32_t place = memory_place(m, words + 1);
        seen[0] = words[0] + 1 == size;
        seen[1] = words[1];
        words[0] = seen[0] ? 0 : words[0] + 1;
        words[1] += seen[0];
        put_log(c, seen, sizeof seen);
        wake(lane->explore, words + 1);
        judge(c, "arrive", place, words[1], memory_swap(m, lane->number, place));
    }
    *turn = seen[1];
    return seen[0] != 0;
}

enum bell_status explore_wait(struct bell_lane *lane, const void *key, bool (*done)(struct bell_lane *, void *),
                              void *context, const char *what)
{
    struct coroutine *c = coroutine_of(lane);
    uint64_t nothing = 0;
    c->done = done;
    c->done_context = context;
    c->key = key;
    c->waits_for = what;
    c->is_waiting = true;
    if (enter(c, true))
        put_log(c, &nothing, sizeof nothing);
    else
        get_log(c, &nothing, sizeof nothing);
    c->is_waiting = false;
    c->is_in_wait = true;
    bool is_done = done(lane, context);
    c->is_in_wait = false;
    explore_claim(lane, is_done, "a wait ended too early");
    return BELL_OK;
}

/* ---- between steps ---- */

void explore_fence(struct bell_lane *lane)
{
    if (!coroutine_of(lane)->is_rewinding) memory_fence(&lane->explore->memory, lane->number);
}

void explore_read(struct bell_lane *lane, void *to, const void *from, size_t size)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    if (c->is_rewinding) {
        get_log(c, to, size);
        return;
    }
    memcpy(to, from, size);
    put_log(c, to, size);
    judge(c, "read", memory_place(m, from), first_word(to, size), memory_read(m, lane->number, memory_place(m, from)));
}

void explore_write(struct bell_lane *lane, void *to, const void *from, size_t size)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    if (c->is_rewinding || size == 0) return;
    memcpy(to, from, size);
    judge(c, "write", memory_place(m, to), first_word(from, size), memory_write(m, lane->number, memory_place(m, to)));
}

void explore_touch(struct bell_lane *lane, const void *at)
{
    struct coroutine *c = coroutine_of(lane);
    struct explore_memory *m = &lane->explore->memory;
    uint32_t place = memory_place(m, at);
    if (!c->is_rewinding && !c->is_peeking)
        m->now.access[place].read[lane->number] = ++m->now.clock[lane->number].of[lane->number];
}

bool explore_holds(struct bell_lane *lane, const void *at)
{
    return memory_holds(&lane->explore->memory, at);
}

void explore_ghost(struct bell_lane *lane, uint64_t *word, uint64_t value)
{
    if (!coroutine_of(lane)->is_rewinding) *word = value;
}

void explore_mark(struct bell_lane *lane, const uint64_t *kept, uint32_t words, uint64_t point)
{
    uint64_t seen = explore_mix(1, point);
    if (coroutine_of(lane)->is_rewinding) return;
    for (uint32_t w = 0; w < words; w++)
        seen = explore_mix(seen, kept[w]);
    lane->explore->memory.now.seen[lane->number] = seen;
}

void explore_discard(struct bell_lane *lane)
{
    lane->explore->is_discarded = true;
    for (;;)
        park(coroutine_of(lane));
}

void explore_claim(struct bell_lane *lane, bool claim, const char *text)
{
    struct coroutine *c = coroutine_of(lane);
    if (claim) return;
    char line[200];
    (void)snprintf(line, sizeof line, "%s: %s", c->name, text);
    fail_with(lane->explore, line);
    for (;;)
        park(c);
}

/* ---- the walk over all schedules ---- */

static void set_bit(uint8_t *bits, uint32_t bit, bool on)
{
    *bits = (uint8_t)(on ? *bits | 1u << bit : *bits & ~(1u << bit));
}

/* Run lane l to where its next step would begin. */
static void take_step(struct explore *x, uint32_t l)
{
    struct coroutine *c = &x->lane[l];
    struct explore_state *now = &x->memory.now;
    rewind_lane(x, c);
    x->wakes = 0;
    c->is_rewinding = false;
    resume(x, c);
    set_bit(&now->waits, l, c->is_waiting);
    set_bit(&now->ended, l, c->has_ended);
    set_bit(&now->asleep, l, false);
    if (now->clock[l].of[l] + 50u > EXPLORE_CLOCK_MAX) fail_with(x, "too many accesses for the clocks");
}

static bool is_woken(const struct explore *x, const void *key)
{
    for (uint32_t i = 0; i < x->wakes; i++)
        if (x->woken[i] == key) return true;
    return false;
}

/* Lanes that can run.  A lane that waits by key falls asleep when it finds nothing, until its key changes. */
static uint32_t find_enabled(struct explore *x)
{
    struct explore_state *now = &x->memory.now;
    uint32_t enabled = 0;
    for (uint32_t l = 0; l < x->memory.lanes; l++) {
        struct coroutine *c = &x->lane[l];
        bool can = !(now->ended >> l & 1);
        if (can && now->waits >> l & 1) {
            rewind_lane(x, c);
            if (x->by_key && is_woken(x, c->key)) set_bit(&now->asleep, l, false);
            c->is_peeking = true;
            can = c->done(&c->lane, c->done_context);
            c->is_peeking = false;
            if (x->by_key && !can) set_bit(&now->asleep, l, true);
            can = can && !(now->asleep >> l & 1);
        }
        enabled |= (uint32_t)can << l;
    }
    return enabled;
}

/* Before the first step: every lane stands before its first one. */
static void start(struct explore *x)
{
    struct explore_state *now = &x->memory.now;
    x->frame[0].what = NULL;
    for (uint32_t l = 0; l < x->memory.lanes; l++) {
        struct coroutine *c = &x->lane[l];
        start_lane(x, c, false);
        set_bit(&now->waits, l, c->is_waiting);
        set_bit(&now->ended, l, c->has_ended);
    }
}

/* The current state goes to frame `depth`, or is known already: then its schedules are added to the frame above. */
static bool arrive(struct explore *x, uint32_t depth, const char *(*at_end)(struct explore *x, void *context),
                   void *context)
{
    uint32_t enabled = find_enabled(x);
    struct explore_key key = memory_fingerprint(&x->memory);
    const struct explore_count *known = table_find(&x->table, key);
    if (known) {
        count_add(&x->frame[depth - 1].schedules, known);
        return false;
    }
    struct frame *f = &x->frame[depth];
    f->state = x->memory.now;
    f->key = key;
    f->enabled = f->left = enabled;
    memset(&f->schedules, 0, sizeof f->schedules);
    x->result.states++;
    if (depth > x->result.longest) x->result.longest = depth;
    if (enabled) return true;
    const char *wrong = x->memory.now.ended + 1u != 1u << x->memory.lanes ? "deadlock: every lane waits"
                        : at_end                                          ? at_end(x, context)
                                                                          : NULL;
    if (wrong) fail_with(x, wrong);
    f->schedules.word[0] = 1;
    return true;
}

/* Take the next untried step of the deepest frame. */
static void advance(struct explore *x, const char *(*check)(struct explore *x, void *context),
                    const char *(*at_end)(struct explore *x, void *context), void *context)
{
    struct frame *f = &x->frame[x->depth];
    uint32_t lane = (uint32_t)__builtin_ctz(f->left);
    if (f->left != f->enabled) x->memory.now = f->state;
    f->left &= f->left - 1;
    f->lane = lane;
    f->what = NULL;
    x->result.steps++;
    x->is_discarded = false;
    take_step(x, lane);
    const char *wrong = check && !x->has_failed ? check(x, context) : NULL;
    if (wrong) fail_with(x, wrong);
    if (x->depth + 2 > EXPLORE_DEPTH_MAX) fail_with(x, "schedule too long");
    if (!x->has_failed && !x->is_discarded && arrive(x, x->depth + 1, at_end, context))
        x->frame[++x->depth].what = NULL;
}

bool explore_run(struct explore *x, const char *(*check)(struct explore *x, void *context),
                 const char *(*at_end)(struct explore *x, void *context), void *context, struct explore_result *result)
{
    x->depth = 0;
    start(x);
    if (!x->has_failed) (void)arrive(x, 0, at_end, context);
    while (!x->has_failed) {
        struct frame *f = &x->frame[x->depth];
        if (f->left) {
            advance(x, check, at_end, context);
            continue;
        }
        table_put(&x->table, f->key, f->schedules);
        if (x->depth == 0) break;
        count_add(&x->frame[--x->depth].schedules, &f->schedules);
    }
    x->result.schedules = x->frame[0].schedules;
    *result = x->result;
    return !x->has_failed;
}
