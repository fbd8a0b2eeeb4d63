/* Devices: see device.h. */
#include "model/device.h"

#include "model/internal.h"

mr_memory_stats mr_device_memory(mr_device *device) {
    mr_memory_stats stats = device->memory;
    stats.reserved = device->machine->backend->memory_reserved(device);
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
    return device->machine->backend->enable_peer_access(device, peer);
}

mr_status mr_device_trim(mr_device *device) {
    MR_TRY(mr_machine_ready(device->machine));
    return device->machine->backend->memory_trim(device);
}

mr_status mr_device_synchronize(mr_device *device) {
    mr_machine *machine = device->machine;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_announce(machine, MR_ACTION_DEVICE_SYNC, NULL, NULL, device, "synchronize"));
    mr_status status = machine->backend->device_synchronize(device);
    return mr_machine_waited(machine, status);
}
