/* Time on the host: lets the device advance until a condition holds, and advances the host's clock.
 *
 * Every wait ends: the graph of pending commands has no cycle, so while work is pending some work is ready, and a
 * chooser must take a step at a wait. The exception are collectives that hold multiprocessors while they wait for each
 * other (meet.c): that is a deadlock of the program. After every wait, also one that was interrupted, the host's clock
 * is not behind the device's. */
#include "virtual/state.h"

typedef enum {
    UNTIL_COUNT,
    UNTIL_GATHERED,
    UNTIL_DEVICE,
    UNTIL_MARK,
    UNTIL_LAUNCH,
    UNTIL_KEPT,
    UNTIL_BEGUN,
    UNTIL_FREES
} until_kind;

typedef struct {
    until_kind kind;
    queue *queue;
    vdevice *device;
    mark *mark;
    work *work;
    uint64_t count; /* completed works of the queue */
} until;

static bool holds(const vgpu *gpu, const until *u) {
    switch (u->kind) {
    case UNTIL_COUNT: return u->queue->completed >= u->count;
    case UNTIL_GATHERED: return !u->queue->head && !u->device->busy_blocking;
    case UNTIL_DEVICE: return !u->device->pending;
    case UNTIL_MARK: return u->mark->done;
    case UNTIL_LAUNCH: return u->queue->launches < (uint64_t)gpu->set.launch_queue_depth;
    case UNTIL_KEPT: return gpu->keep != u->work;
    case UNTIL_BEGUN: return u->work->u.member.begun;
    case UNTIL_FREES: return !u->device->pool.pending_count && !u->device->pool.guarded_count;
    }
    return true;
}

/* A work whose end is needed for it; NULL: several. */
static work *goal_of(const until *u) {
    switch (u->kind) {
    case UNTIL_COUNT:
    case UNTIL_GATHERED: return u->queue->tail;
    case UNTIL_MARK: return u->mark->record;
    case UNTIL_LAUNCH: return u->queue->head;
    case UNTIL_KEPT:
    case UNTIL_BEGUN: return u->work;
    case UNTIL_DEVICE:
    case UNTIL_FREES: break;
    }
    return NULL;
}

static mr_status lose(vgpu *gpu, mr_status error) {
    error = mr_machine_lose(gpu->machine, error);
    mr_virtual_drop_pending(gpu);
    return error;
}

static mr_status check_memory(vgpu *gpu) {
    if (!gpu->out_of_memory) return MR_OK;
    gpu->out_of_memory = false;
    return lose(gpu, mr_fail(MR_CODE_LAUNCH_FAILURE, "the virtual GPU is out of host memory"));
}

static bool interrupted(const vgpu *gpu) {
    const mr_machine *machine = gpu->machine;
    return machine->hooks.interrupted && machine->hooks.interrupted(machine->hooks.context);
}

static void catch_up(vgpu *gpu) {
    if (gpu->host_ns < gpu->device_ns) gpu->host_ns = gpu->device_ns;
}

void mr_virtual_follow(vgpu *gpu) {
    uint64_t since = gpu->host_ns;
    catch_up(gpu);
    mr_machine_host_followed(gpu->machine, since, gpu->host_ns);
}

static void catch_up_since(vgpu *gpu, uint64_t since) {
    catch_up(gpu);
    mr_machine_host_stood(gpu->machine, since, gpu->host_ns);
}

/* The device may have been lost since the call began: an observer of the call can let the device advance. */
static mr_status check_lost(const vgpu *gpu) {
    return gpu->machine->lost ? mr_error_copy(gpu->machine->lost) : MR_OK;
}

static mr_status wait_until(vgpu *gpu, const until *u) {
    MR_TRY(check_lost(gpu));
    mr_device_step step;
    mr_moment moment = {.point = MR_CHOICE_WAIT, .until = UINT64_MAX};
    for (; !holds(gpu, u); moment.taken++) {
        gpu->interruptible = u->kind != UNTIL_KEPT || u->work->state != WORK_STARTED;
        if (gpu->interruptible && interrupted(gpu)) {
            catch_up(gpu);
            return mr_fail(MR_CODE_INTERRUPTED, "interrupted while waiting for the device");
        }
        moment.goal = goal_of(u);
        if (!gpu->chooser->take(gpu->chooser, &moment, &step))
            return lose(gpu, gpu->meets
                                 ? mr_virtual_meet_deadlock(gpu)
                                 : mr_fail(MR_CODE_UNKNOWN,
                                           "deadlock: the host waits, and no pending operation "
                                           "can run; this is a bug in the virtual GPU"));
        MR_TRY(mr_virtual_carry_out(gpu, &step));
        MR_TRY(check_memory(gpu));
    }
    return MR_OK;
}

mr_status mr_virtual_advance(vgpu *gpu, mr_choice_point point, work *goal) {
    if (point != MR_CHOICE_LOOK) MR_TRY(check_lost(gpu));
    mr_device_step step;
    mr_moment moment = {.point = point, .until = gpu->host_ns, .goal = goal};
    gpu->since_advance = 0;
    gpu->interruptible = true;
    for (; gpu->chooser->take(gpu->chooser, &moment, &step); moment.taken++) {
        MR_TRY(mr_virtual_carry_out(gpu, &step));
        MR_TRY(check_memory(gpu));
        moment.goal = NULL; /* it may be gone */
    }
    if (!gpu->chooser->timed) mr_virtual_follow(gpu);
    return MR_OK;
}

/* The host has waited since `since`, and learns the result `wakeup` after `end`; the query alone costs `call`. */
static void move_host(vgpu *gpu, uint64_t since, uint64_t end, double call) {
    uint64_t asked = gpu->host_ns + (uint64_t)call;
    uint64_t woken = end + (uint64_t)gpu->model.wakeup_ns;
    gpu->host_ns = asked > woken ? asked : woken;
    catch_up_since(gpu, since + (uint64_t)call);
}

/* Only the strictest pool policy asks for it, so only where that may be chosen the streams are walked. */
static void prove(vdevice *device, bool gathered_only) {
    if (device->gpu->set.reuse_opportunistic && !device->gpu->chooser->decide) return;
    for (queue *q = device->first; q; q = q->next)
        if (!gathered_only || mr_order_gives(&q->lane, MR_PLACE_GATHERED)) q->proven = q->completed;
}

mr_status mr_virtual_wait_stream(queue *q) {
    vdevice *device = q->device;
    vgpu *gpu = device->gpu;
    uint64_t since = gpu->host_ns;
    bool gathers = mr_order_sync_gathers(q->lane.facts);
    until u = {.kind = gathers ? UNTIL_GATHERED : UNTIL_COUNT,
               .queue = q,
               .device = device,
               .count = q->submitted};
    MR_TRY(wait_until(gpu, &u));
    q->proven = q->completed;
    if (gathers) prove(device, true);
    move_host(gpu, since, gathers ? device->blocking_end : q->last_end, gpu->model.synchronize_ns);
    mr_pool_synchronized(device);
    return MR_OK;
}

mr_status mr_virtual_wait_device(vdevice *device) {
    vgpu *gpu = device->gpu;
    uint64_t since = gpu->host_ns;
    until u = {.kind = UNTIL_DEVICE, .device = device};
    MR_TRY(wait_until(gpu, &u));
    prove(device, false);
    /* The driver checks each stream in turn, and then its own work. So each wait, except that for one stream, ends
     * later than the work. */
    const device_model *model = &gpu->model;
    double beyond = model->device_synchronize_ns - model->synchronize_ns;
    uint64_t told = device->last_end + (uint64_t)(beyond > 0 ? beyond : 0);
    move_host(gpu, since, told, model->device_synchronize_ns);
    mr_pool_synchronized(device);
    return MR_OK;
}

mr_status mr_virtual_wait_mark(vgpu *gpu, mark *m) {
    uint64_t since = gpu->host_ns;
    until u = {.kind = UNTIL_MARK, .mark = m};
    MR_TRY(wait_until(gpu, &u));
    move_host(gpu, since, m->time, gpu->model.synchronize_ns);
    return MR_OK;
}

mr_status mr_virtual_wait_launch(queue *q) {
    vgpu *gpu = q->device->gpu;
    uint64_t since = gpu->host_ns;
    until u = {.kind = UNTIL_LAUNCH, .queue = q, .device = q->device};
    MR_TRY(wait_until(gpu, &u));
    catch_up_since(gpu, since);
    return MR_OK;
}

mr_status mr_virtual_wait_kept(work *w) {
    queue *q = w->queue;
    vgpu *gpu = q->device->gpu;
    uint64_t since = gpu->host_ns;
    until u = {.kind = UNTIL_KEPT, .queue = q, .work = w};
    mr_status status = wait_until(gpu, &u);
    if (status) {
        if (gpu->keep == w) { /* interrupted before it began */
            gpu->keep = NULL;
            mr_virtual_cancel(w);
            mr_virtual_work_destroy(w);
        }
        return status;
    }
    move_host(gpu, since, q->last_end, 0);
    return MR_OK;
}

/* The host's clock does not change, because the host did not ask. */
mr_status mr_virtual_wait_member(vgpu *gpu, const mr_command *member, uint64_t *out_time) {
    const meet *m = gpu->meets;
    while (m->meeting != member->meeting) m = m->next;
    work *w = m->first;
    while (w->command != member) w = w->u.member.next;
    until u = {.kind = UNTIL_BEGUN, .queue = w->queue, .work = w};
    MR_TRY(wait_until(gpu, &u));
    *out_time = m->newest;
    if (!gpu->chooser->timed) catch_up(gpu);
    return MR_OK;
}

mr_status mr_virtual_wait_frees(vdevice *device) {
    vgpu *gpu = device->gpu;
    uint64_t since = gpu->host_ns;
    until u = {.kind = UNTIL_FREES, .device = device};
    MR_TRY(wait_until(gpu, &u));
    catch_up_since(gpu, since);
    return MR_OK;
}

mr_status mr_virtual_device_synchronize(mr_device *device) {
    return mr_virtual_wait_device(device->impl);
}

mr_status mr_virtual_host_access(mr_machine *machine) {
    return mr_virtual_advance(vgpu_of(machine), MR_CHOICE_ACCESS, NULL);
}

/* The memory of the host cannot change by itself, so nothing pending: no time passes. */
mr_status mr_virtual_host_polls(mr_machine *machine) {
    vgpu *gpu = vgpu_of(machine);
    if (!gpu->pending) return MR_OK;
    gpu->host_ns += (uint64_t)gpu->model.query_ns;
    return mr_virtual_advance(gpu, MR_CHOICE_QUERY, NULL);
}

void mr_virtual_host_work(mr_machine *machine, uint64_t bytes) {
    vgpu *gpu = vgpu_of(machine);
    gpu->host_ns += mr_virtual_bytes_ns(bytes, gpu->model.host_work_gbs);
}

uint64_t mr_virtual_host_time(mr_machine *machine) {
    return vgpu_of(machine)->host_ns;
}
