/* SPDX-License-Identifier: Apache-2.0
 * From the options of a command to what is run: executor, documents, --set, validation. */
#include "tools/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX (BELL_PARTS * BELL_ROWS_MAX)

const struct bell_executor *const bell_executors[] = { &bell_null_executor, &bell_soft_executor,  &bell_cuda_executor,
                                                       &bell_verbs_executor, &bell_mlx5_executor, &bell_sim_executor,
                                                       NULL };

const struct bell_executor *bell_executor_find(const char *name)
{
    for (const struct bell_executor *const *e = bell_executors; *e; e++)
        if (strcmp((*e)->name, name) == 0) return *e;
    return NULL;
}

/* ---- --set ---- */

static void *object_of(struct bell_setup *setup, uint32_t part)
{
    return (char *)setup + bell_parts[part].offset;
}

/* Names and summaries of documents are no parameters. */
static bool is_parameter(uint32_t part, const struct bell_field *f)
{
    return f && (f->type != BELL_FIELD_STRING || part == BELL_PART_MACHINE);
}

static const struct bell_field *parameter(uint32_t part, const char *key)
{
    const struct bell_field *f = bell_field_find(bell_parts[part].table, key);
    return is_parameter(part, f) ? f : NULL;
}

static void unknown_key(const char *key, struct bell_error *err)
{
    static char full[KEYS_MAX][72];
    const char *names[2 * KEYS_MAX + 1];
    size_t count = 0, rows = 0;
    for (uint32_t part = 0; part < BELL_PARTS; part++) {
        for (const struct bell_field *f = bell_parts[part].table; f->key && rows < KEYS_MAX; f++) {
            if (!is_parameter(part, f)) continue;
            (void)snprintf(full[rows], sizeof full[rows], "%s.%s", bell_parts[part].name, f->key);
            names[count++] = full[rows++];
            names[count++] = f->key;
        }
    }
    names[count] = NULL;
    const char *near = bell_near(key, names);
    (void)bell_fail(err, BELL_INVALID, "--set %.60s: no such parameter%s%s; see bellwether list parameters", key,
                    near ? ", did you mean " : "", near ? near : "");
}

/* "platform.gpu.clock_mhz", or "gpu.clock_mhz" where only one part has it. */
static enum bell_status find_key(const char *key, uint32_t *part, const struct bell_field **field,
                                 struct bell_error *err)
{
    char prefixes[80] = "";
    uint32_t hits = 0;
    for (uint32_t p = 0; p < BELL_PARTS; p++) {
        size_t n = strlen(bell_parts[p].name);
        const struct bell_field *f = NULL;
        if (strncmp(key, bell_parts[p].name, n) == 0 && key[n] == '.') f = parameter(p, key + n + 1);
        if (!f && (f = parameter(p, key)) != NULL) {
            size_t used = strlen(prefixes);
            (void)snprintf(prefixes + used, sizeof prefixes - used, "%s%s.%.20s", hits ? " or " : "",
                           bell_parts[p].name, key);
        }
        if (f) {
            hits++;
            *part = p;
            *field = f;
        }
    }
    if (hits == 0) {
        unknown_key(key, err);
        return BELL_INVALID;
    }
    return hits == 1 ? BELL_OK : bell_fail(err, BELL_INVALID, "--set %.60s: ambiguous, expected %s", key, prefixes);
}

static enum bell_status set_value(const struct bell_field *f, void *object, const char *value, struct bell_error *err)
{
    char *end;
    double factor = strtod(value, &end);
    bool is_number = f->type == BELL_FIELD_U32 || f->type == BELL_FIELD_U64 || f->type == BELL_FIELD_REAL;
    if (is_number && end != value && strcmp(end, "x") == 0)
        return bell_field_set_number(f, object, factor * bell_field_number(f, object), err);
    return bell_field_set_text(f, object, value, err);
}

enum bell_status bell_setup_set(struct bell_setup *setup, const char *assignment, struct bell_error *err)
{
    const struct bell_field *field = NULL;
    struct bell_error inner;
    char key[80];
    uint32_t part = 0;
    size_t n = strcspn(assignment, "=");
    if (n == 0 || assignment[n] != '=' || n >= sizeof key)
        return bell_fail(err, BELL_INVALID, "--set %.60s: expected KEY=VALUE", assignment);
    memcpy(key, assignment, n);
    key[n] = '\0';
    enum bell_status s = find_key(key, &part, &field, err);
    if (s != BELL_OK) return s;
    if (part == BELL_PART_PLATFORM && !bell_setup_uses(setup, part))
        return bell_fail(err, BELL_INVALID, "--set %s: nothing uses it without --platform", key);
    if (part == BELL_PART_MACHINE && setup->has_platform)
        return bell_fail(err, BELL_INVALID, "--set %s: a run in virtual time uses no machine", key);
    if (set_value(field, object_of(setup, part), assignment + n + 1, &inner) != BELL_OK)
        return bell_fail(err, BELL_INVALID, "--set %.80s: %s", assignment, inner.text);
    (void)snprintf(setup->source[part][field - bell_parts[part].table], BELL_SOURCE_SIZE, "set: --set %.200s",
                   assignment);
    return BELL_OK;
}

/* ---- the whole ---- */

bool bell_setup_uses(const struct bell_setup *setup, uint32_t part)
{
    if (part == BELL_PART_PLATFORM) return setup->has_platform || setup->has_pace;
    return part != BELL_PART_MACHINE || !setup->has_platform;
}

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

static void fill_digest(struct bell_setup *setup)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t part = 0; part < BELL_PARTS; part++) {
        if (!bell_setup_uses(setup, part)) continue;
        for (const struct bell_field *f = bell_parts[part].table; f->key; f++) {
            char value[64];
            if (!is_parameter(part, f)) continue;
            bell_field_text(f, object_of(setup, part), value, sizeof value);
            h = hash(hash(hash(h, bell_parts[part].name), "."), f->key);
            h = hash(hash(hash(h, "="), value), "\n");
        }
    }
    (void)snprintf(setup->digest, sizeof setup->digest, "%016" PRIx64, h);
}

enum bell_status bell_setup_finish(struct bell_setup *setup, struct bell_error *err)
{
    struct bell_error inner;
    bell_stack_resolve(&setup->stack);
    enum bell_status s = bell_stack_validate(&setup->stack, &inner);
    if (s != BELL_OK) return bell_fail(err, s, "stack %s: %s", setup->stack.name, inner.text);
    s = bell_program_validate(&setup->program, &setup->stack, &inner);
    if (s != BELL_OK)
        return bell_fail(err, s, "%s on stack %s: %s", setup->program.name, setup->stack.name, inner.text);
    fill_digest(setup);
    return BELL_OK;
}

static enum bell_status unknown_executor(const char *name, struct bell_error *err)
{
    const char *names[16];
    char list[120] = "";
    size_t count = 0, used = 0;
    for (; bell_executors[count] && count < 15; count++) {
        names[count] = bell_executors[count]->name;
        int n = snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", names[count]);
        if (n > 0 && used + (size_t)n < sizeof list) used += (size_t)n;
    }
    names[count] = NULL;
    const char *near = bell_near(name, names);
    return bell_fail(err, BELL_INVALID, "'%.60s' is not a known executor%s%s; known: %s", name,
                     near ? ", did you mean " : "", near ? near : "", list);
}

/* Virtual time needs a platform, and nothing else uses one. */
static enum bell_status pick_executor(struct bell_setup *setup, const struct bell_options *o, struct bell_error *err)
{
    const char *name = o->executor ? o->executor : o->platform ? "sim" : "soft";
    setup->executor = bell_executor_find(name);
    if (!setup->executor) return unknown_executor(name, err);
    bool is_virtual = strcmp(setup->executor->clock_domain, "virtual") == 0;
    if (is_virtual && !o->platform)
        return bell_fail(err, BELL_INVALID, "executor %s needs --platform; see bellwether list platforms", name);
    if (!is_virtual && o->platform)
        return bell_fail(err, BELL_INVALID, "executor %s does not use a platform: it runs on this machine", name);
    return BELL_OK;
}

enum bell_status bell_setup_load(struct bell_setup *setup, const char *experiment, const struct bell_options *o,
                                 struct bell_error *err)
{
    memset(setup, 0, sizeof *setup);
    enum bell_status s = pick_executor(setup, o, err);
    if (s == BELL_OK) s = bell_setup_read(setup, BELL_PART_EXPERIMENT, experiment, err);
    if (s == BELL_OK) s = bell_setup_read(setup, BELL_PART_STACK, o->stack ? o->stack : "mini-gda", err);
    if (s == BELL_OK && o->platform) s = bell_setup_read(setup, BELL_PART_PLATFORM, o->platform, err);
    if (s == BELL_OK && o->pace) s = bell_setup_read_pace(setup, o->pace, err);
    bell_field_defaults(bell_machine_fields, &setup->machine);
    for (uint32_t i = 0; s == BELL_OK && i < o->sets; i++)
        s = bell_setup_set(setup, o->set[i], err);
    if (s == BELL_OK && o->has_seed) setup->program.seed = o->seed;
    return s == BELL_OK ? bell_setup_finish(setup, err) : s;
}
