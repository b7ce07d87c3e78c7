/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/mlx5/prm.h"

const struct bell_prm_place bell_prm_places[BELL_PRM_FIELDS] = {
#define PLACE(name, bit, bits) { #name, bit, bits },
    BELL_PRM_MAP(PLACE)
#undef PLACE
};

/* Bit by bit: commands are made a few times a run. */
bool bell_prm_set(uint8_t *bytes, enum bell_prm_field field, uint64_t value)
{
    const struct bell_prm_place *p = &bell_prm_places[field];
    if (p->bits < 64 && value >> p->bits)
        return false;
    for (uint32_t i = 0; i < p->bits; i++) {
        uint32_t at = (uint32_t)p->bit + p->bits - 1 - i; /* the least significant bit stands last */
        uint8_t mask = (uint8_t)(0x80u >> at % 8);
        if (value >> i & 1)
            bytes[at / 8] |= mask;
        else
            bytes[at / 8] &= (uint8_t)~mask;
    }
    return true;
}

uint64_t bell_prm_get(const uint8_t *bytes, enum bell_prm_field field)
{
    const struct bell_prm_place *p = &bell_prm_places[field];
    uint64_t value = 0;
    for (uint32_t at = p->bit; at < (uint32_t)p->bit + p->bits; at++)
        value = value << 1 | ((uint32_t)bytes[at / 8] >> (7 - at % 8) & 1u);
    return value;
}

const char *bell_prm_opcode_text(uint32_t opcode)
{
    switch (opcode) {
    case BELL_PRM_QUERY_HCA_CAP:
        return "QUERY_HCA_CAP";
    case BELL_PRM_CREATE_CQ:
        return "CREATE_CQ";
    case BELL_PRM_CREATE_QP:
        return "CREATE_QP";
    case BELL_PRM_RST2INIT_QP:
        return "RST2INIT_QP";
    case BELL_PRM_INIT2RTR_QP:
        return "INIT2RTR_QP";
    case BELL_PRM_RTR2RTS_QP:
        return "RTR2RTS_QP";
    default:
        return "unknown command";
    }
}

const char *bell_prm_status_text(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *text;
    } texts[] = {
        { 0x00, "ok" },
        { 0x01, "internal error" },
        { 0x02, "bad operation" },
        { 0x03, "bad parameter" },
        { 0x04, "bad system state" },
        { 0x05, "bad resource" },
        { 0x06, "resource busy" },
        { 0x08, "limit exceeded" },
        { 0x09, "bad resource state" },
        { 0x0a, "bad index" },
        { 0x0f, "no resources" },
        { 0x10, "bad QP state" },
        { 0x30, "bad packet" },
        { 0x40, "too many outstanding CQEs" },
        { 0x50, "bad input length" },
        { 0x51, "bad output length" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "unknown status";
}
