/* SPDX-License-Identifier: Apache-2.0 */
#include "core/event.h"

static const char *const kind_name[BELL_EVENT_KINDS + 1] = {
#define BELL_EVENT_TEXT(name, text, sim_only) text,
    BELL_EVENT_MAP(BELL_EVENT_TEXT)
#undef BELL_EVENT_TEXT
        NULL
};
static const bool kind_sim_only[BELL_EVENT_KINDS] = {
#define BELL_EVENT_SIM(name, text, sim_only) sim_only,
    BELL_EVENT_MAP(BELL_EVENT_SIM)
#undef BELL_EVENT_SIM
};
static const char *const scope_name[BELL_SCOPES + 1] = { "none", "gpu", "gpu_sc", "sys", "sys_sc", NULL };
static const char *const actor_name[BELL_ACTORS + 1] = { "gpu", "cpu", "nic", "pcie", "wire", NULL };

const char *bell_event_name(uint32_t kind)
{
    return kind < BELL_EVENT_KINDS ? kind_name[kind] : NULL;
}

const char *bell_scope_name(uint32_t scope)
{
    return scope < BELL_SCOPES ? scope_name[scope] : NULL;
}

const char *bell_actor_name(uint32_t actor)
{
    return actor < BELL_ACTORS ? actor_name[actor] : NULL;
}

bool bell_event_is_sim_only(uint32_t kind)
{
    return kind < BELL_EVENT_KINDS && kind_sim_only[kind];
}
