/* The groups of a world: each rank has all of them, even before its script asks for them. */
#include "collective/world_parts.h"

#include <stdlib.h>
#include <string.h>

void mr_world_free_group(world_group *group) {
    for (uint32_t k = 0; k < group->size; k++) mr_comm_release(group->comms[k]);
    free(group);
}

static void list(const uint32_t *ranks, uint32_t count, mr_buffer *out) {
    for (uint32_t i = 0; i < count; i++) mr_buffer_printf(out, "%s%u", i ? ", " : "", ranks[i]);
}

/* The name that lua/millrace/dist.lua gives to the group. */
static void name_group(const world_group *group, mr_buffer *out) {
    if (!group->number) {
        mr_buffer_puts(out, "world");
        return;
    }
    mr_buffer_printf(out, "group %u of ", group->number);
    if (group->size > 16) {
        mr_buffer_printf(out, "%u ranks", group->size);
        return;
    }
    mr_buffer_puts(out, "ranks ");
    list(group->ranks, group->size, out);
}

mr_status mr_world_make_group(mr_world *w, uint32_t number, const uint32_t *ranks, uint32_t count,
                              world_group **out_group) {
    mr_device *devices[MR_MEETING_MOST];
    mr_buffer name = {0};
    world_group *group = *out_group = calloc(1, sizeof *group);
    if (!group) return mr_no_memory("for a group");
    group->number = number;
    group->size = count;
    for (uint32_t i = 0; i < count; i++) {
        group->ranks[i] = ranks[i];
        if (!w->device) devices[i] = w->c->machine->devices[ranks[i]];
    }
    name_group(group, &name);
    mr_status status = w->device
                           ? mr_comms_of_processes(w->c, w->device, count, name.data, group->comms)
                           : mr_comms_create(w->c, devices, count, name.data, group->comms);
    mr_buffer_free(&name);
    if (!status && !mr_vec_push(&w->groups, group)) status = mr_no_memory("for a group");
    if (status) {
        mr_world_free_group(group);
        return status;
    }
    group->comms[0]->clique->group = number + 1;
    memcpy(group->comms[0]->clique->hosts, ranks, count * sizeof *ranks);
    return MR_OK;
}

static mr_status other_ranks(const world_group *group, const uint32_t *ranks, uint32_t count,
                             uint32_t asking) {
    mr_buffer here = {0}, there = {0};
    list(ranks, count, &here);
    list(group->ranks, group->size, &there);
    mr_status status = mr_fail(MR_CODE_INVALID_ARGUMENT,
                               "new_group: rank %u asks for a group of ranks %s, and another rank "
                               "for one of %s: all ranks make the same groups in the same order",
                               asking, here.data ? here.data : "", there.data ? there.data : "");
    mr_buffer_free(&here);
    mr_buffer_free(&there);
    return status;
}

mr_status mr_world_find_group(mr_world *w, uint32_t number, const uint32_t *ranks, uint32_t count,
                              uint32_t asking, world_group **out_group) {
    for (size_t i = 0; i < w->groups.count; i++) {
        world_group *group = *out_group = w->groups.items[i];
        if (group->number != number) continue;
        bool same = group->size == count && memcmp(group->ranks, ranks, count * sizeof *ranks) == 0;
        return same ? MR_OK : other_ranks(group, ranks, count, asking);
    }
    return mr_world_make_group(w, number, ranks, count, out_group);
}
