/* Devices: see device.h. */
#include "model/device.h"

#include "model/capture.h"
#include "model/history.h"
#include "model/hosts.h"
#include "model/internal.h"

mr_memory_stats mr_device_memory(mr_device *device) {
    mr_memory_stats stats = device->memory;
    stats.reserved = device->machine->backend->memory_reserved(device);
    MR_ACCOUNT(device->machine, MR_OK, .kind = MR_COMMAND_MEMORY_LOOK,
               .u.account = {.device = device, .value = stats.reserved});
    return stats;
}

int mr_device_clamp_priority(const mr_device *device, int priority) {
    int least = device->properties.priority_least;
    int greatest = device->properties.priority_greatest;
    return priority > least ? least : priority < greatest ? greatest : priority;
}

bool mr_device_can_access_peer(mr_device *device, mr_device *peer) {
    return device != peer && device->machine->backend->can_access_peer(device, peer);
}

mr_status mr_device_enable_peer_access(mr_device *device, mr_device *peer) {
    MR_TRY(mr_machine_ready(device->machine));
    if (device == peer)
        return mr_fail(MR_CODE_INVALID_DEVICE,
                       "enable_peer_access: device %d needs no access to itself", device->index);
    mr_history_end(device->machine, "enable_peer_access", (mr_site){0});
    mr_status status = device->machine->backend->enable_peer_access(device, peer);
    if (!status) device->peers |= (uint64_t)1 << (peer->index & 63);
    MR_ACCOUNT(device->machine, status, .kind = MR_COMMAND_ENABLE_PEER,
               .u.account = {.device = device, .peer = peer});
    return status;
}

void mr_device_keep_peers(mr_device *device, uint64_t peers) {
    mr_machine *machine = device->machine;
    uint64_t added = device->peers & ~peers;
    for (int i = 0; added && i < machine->device_count; i++)
        if (added >> (i & 63) & 1)
            machine->backend->forget_peer_access(device, machine->devices[i]);
    device->peers &= peers;
}

mr_status mr_device_trim(mr_device *device) {
    MR_TRY(mr_machine_ready(device->machine));
    mr_history_end(device->machine, "empty_cache", (mr_site){0});
    MR_ACCOUNT_BEFORE(device->machine);
    mr_status status = device->machine->backend->memory_trim(device);
    MR_ACCOUNT(device->machine, status, .kind = MR_COMMAND_TRIM, .u.account.device = device);
    return status;
}

mr_status mr_device_synchronize(const mr_caller *caller, mr_device *device) {
    mr_machine *machine = caller->machine;
    MR_TRY(mr_host_comes(caller));
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_DEVICE, "synchronize", NULL, NULL, device));
    mr_command *command;
    MR_TRY(
        mr_host_begin(caller, MR_COMMAND_DEVICE_SYNC, NULL, NULL, device, "synchronize", &command));
    return mr_host_end(machine, command, machine->backend->device_synchronize(device));
}

mr_status mr_device_drain(mr_device *device) {
    mr_machine *machine = device->machine;
    MR_TRY(mr_machine_ready(machine));
    mr_history_end(machine, "a wait that millrace made itself", (mr_site){0});
    MR_ACCOUNT_BEFORE(machine);
    mr_status status = mr_machine_waited(machine, machine->backend->device_synchronize(device));
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_DRAIN, .u.account.device = device);
    mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_machine_drain(mr_machine *machine) {
    for (int i = 0; i < machine->device_count; i++) MR_TRY(mr_device_drain(machine->devices[i]));
    return MR_OK;
}
