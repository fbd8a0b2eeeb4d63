/* The cost of a command on the device: its duration when it runs alone, its thread blocks, and its engine.
 * The speeds come from the device model, the amount of work from the operation's row.
 *
 * An operation with a duration of its own (mr.op, mr.spin) takes exactly that when it has the device
 * to itself; rounding is given back to its last blocks. */
#include <math.h>
#include <string.h>

#include "ops/collective.h"
#include "ops/ids.h"
#include "ops/kernel_time.h"
#include "ops/op.h"
#include "ops/params.h"
#include "virtual/state.h"

#define LONGEST_NS       ((uint64_t)1 << 56) /* two years: keeps sums of times from overflowing */
#define SLICED_NS        10000               /* longer work is done in slices, however small */
#define SLICE_BYTES      1024  /* untimed choosers: at least this much output a slice */
#define COPY_BLOCK_BYTES 16384 /* of a copy inside the device, which is a kernel's work */

static uint64_t whole_ns(double ns) {
    return ns >= (double)LONGEST_NS ? LONGEST_NS : ns > 0 ? (uint64_t)llround(ns) : 0;
}

uint64_t mr_virtual_bytes_ns(uint64_t bytes, double gigabytes_per_second) {
    return gigabytes_per_second > 0 ? whole_ns((double)bytes / gigabytes_per_second) : 0;
}

/* one may reach the other directly */
static bool are_peers(const vdevice *a, const vdevice *b) {
    return (a->peers >> b->device->index & 1) || (b->peers >> a->device->index & 1);
}

/* Cuts `duration` into the waves that the blocks make on an idle device. `share`: of the device's rate that the
 * kernel needs for that duration. No other kernel can use that part, so its blocks occupy that share of the
 * threads, even if they have fewer. */
static void set_blocks(const vdevice *device, body *b, uint32_t blocks, uint32_t threads,
                       double share) {
    const device_model *model = &device->gpu->model;
    uint32_t sm_threads = (uint32_t)model->max_threads_per_sm;
    uint32_t least = sm_threads / (uint32_t)model->max_blocks_per_sm; /* R53 */
    b->engine = ENGINE_SM;
    b->blocks = blocks ? blocks : 1;
    uint32_t wanted = (uint32_t)(share * (double)device->capacity / b->blocks);
    if (threads < wanted) threads = wanted;
    b->unit = threads < least ? least : threads > sm_threads ? sm_threads : threads;
    if (!b->unit) b->unit = 1;
    uint64_t fit = device->capacity / b->unit;
    uint64_t waves = (b->blocks + fit - 1) / fit;
    /* The threads that a nearly empty last wave leaves free count as occupied, too: its time is in the duration. */
    uint64_t needed = (uint64_t)(share * (double)(waves * fit));
    if (b->blocks < needed) b->blocks = (uint32_t)needed;
    b->block_ns = b->duration / waves;
    b->rounding = b->duration - b->block_ns * waves;
}

/* A kernel takes the floor to start and to end. Between, it is bound by its memory traffic or by its arithmetic,
 * and reaches the device's rate only with a block on every SM. */
static void set_kernel(const vdevice *device, body *b, double bytes, double flops, double tflops,
                       double gbs, double floor_ns, double least_ns, uint32_t blocks,
                       uint32_t threads) {
    const device_model *model = &device->gpu->model;
    double share = blocks < model->sm_count ? (double)(blocks ? blocks : 1) / model->sm_count : 1;
    double traffic = gbs > 0 ? bytes / (gbs * share) : 0;
    double arithmetic = tflops > 0 ? flops / (tflops * 1e3 * share) : 0;
    double bound = traffic > arithmetic ? traffic : arithmetic;
    double ns = floor_ns + (bound > least_ns ? bound : least_ns);
    b->duration = whole_ns(ns);
    set_blocks(device, b, blocks, threads, ns > 0 ? share * bound / ns : 0);
}

static bool touches_host_memory(const mr_command *command) {
    for (uint32_t i = 0; i < command->operand_count; i++)
        if (command->operands[i].tensor->storage->kind != MR_MEMORY_DEVICE) return true;
    return false;
}

static void prepare_op(const vdevice *device, const mr_command *command, body *b) {
    const device_model *model = &device->gpu->model;
    const mr_op *row = command->u.op.row;
    b->items = row->items(command);
    mr_abstract_params op = {0};
    if (row->family->id == MR_FAMILY_ABSTRACT) op = mr_params_of(command).abstract;
    if (op.duration_ns) {
        b->duration = op.duration_ns < LONGEST_NS ? op.duration_ns : LONGEST_NS;
        /* The blocks of an mr.op occupy the device; mr.spin's do not. */
        bool small = !op.blocks || row->id == MR_OP_spin;
        set_blocks(device, b, op.blocks, small ? 0 : UINT32_MAX, 0);
        return;
    }
    mr_cost cost = {0};
    row->cost(command, &cost);
    bool wide = command->operand_count && command->operands[0].tensor->dtype == MR_F64;
    double gbs = touches_host_memory(command) ? model->h2d_gbs : model->kernel_memory_gbs;
    double floor = command->launch ? model->graph_floor_ns : model->kernel_floor_ns;
    set_kernel(device, b, cost.bytes, cost.flops, wide ? model->fp64_tflops : model->fp32_tflops,
               gbs, floor, cost.least_ns, cost.blocks, cost.threads);
}

static void use_engine(vdevice *device, body *b, int which) {
    /* With one engine everything shares it, with two each direction has one. */
    int count = (int)device->gpu->model.async_engine_count;
    if (count == 1) which = COPY_IN;
    else if (count == 2)
        which = which == COPY_PEER_IN ? COPY_IN : which == COPY_PEER_OUT ? COPY_OUT : which;
    b->copy_engine[b->engines++] = &device->copy_engine[which];
    b->engine = ENGINE_COPY;
}

static vdevice *home(vgpu *gpu, const mr_command *command, int operand) {
    return &gpu->devices[command->operands[operand].tensor->storage->device->index];
}

static void prepare_peer_copy(vgpu *gpu, const mr_command *command, body *b) {
    const device_model *model = &gpu->model;
    vdevice *to = home(gpu, command, 0), *from = home(gpu, command, 1);
    uint64_t bytes = command->u.copy.bytes;
    if (are_peers(to, from)) {
        b->duration =
            whole_ns(model->peer_latency_ns) + mr_virtual_bytes_ns(bytes, model->peer_gbs);
        use_engine(from, b, COPY_PEER_OUT);
        use_engine(to, b, COPY_PEER_IN);
    } else { /* R59: through the host */
        b->duration = 2 * whole_ns(model->copy_latency_ns) +
                      mr_virtual_bytes_ns(bytes, model->d2h_gbs) +
                      mr_virtual_bytes_ns(bytes, model->h2d_gbs);
        use_engine(from, b, COPY_OUT);
        use_engine(to, b, COPY_IN);
    }
}

static void prepare_copy(vdevice *device, const mr_command *command, body *b) {
    vgpu *gpu = device->gpu;
    const device_model *model = &gpu->model;
    uint64_t bytes = command->u.copy.bytes, latency = whole_ns(model->copy_latency_ns);
    b->items = (int64_t)bytes;
    b->blocks = 1;
    switch (command->u.copy.direction) {
    case MR_COPY_H2D:
        b->duration = latency + mr_virtual_bytes_ns(bytes, model->h2d_gbs);
        use_engine(home(gpu, command, 0), b, COPY_IN);
        break;
    case MR_COPY_D2H:
        b->duration = latency + mr_virtual_bytes_ns(bytes, model->d2h_gbs);
        use_engine(home(gpu, command, 1), b, COPY_OUT);
        break;
    case MR_COPY_PEER: prepare_peer_copy(gpu, command, b); break;
    case MR_COPY_H2H:
        b->duration = mr_virtual_bytes_ns(bytes, model->host_memory_gbs);
        b->engine = ENGINE_NONE;
        break;
    case MR_COPY_D2D: {
        uint64_t blocks = bytes / COPY_BLOCK_BYTES + 1, most = (uint64_t)model->sm_count * 4;
        if (blocks > most) blocks = most;
        set_kernel(device, b, 2.0 * (double)bytes, 0, 0, model->kernel_memory_gbs,
                   model->copy_latency_ns, 0, (uint32_t)blocks, 512);
        return;
    }
    }
    b->block_ns = b->duration;
}

/* The start and the steps are not measured. The share of a link left by the protocol is not measured, either.
 * (PyTorch's all_reduce of 1 GiB on two H200 has 324 GB/s of the 399 that a copy gets.) */
#define COLLECTIVE_NS  8000.0
#define NVLINK_STEP_NS 1500.0
#define PCIE_STEP_NS   2500.0
#define LINK_SHARE     0.81
#define CHANNELS                                                                                   \
    16u /* thread blocks that a collective holds at most, each on a multiprocessor of its own */
#define CHANNEL_THREADS 512u

/* The link between two devices of a model. */
typedef struct {
    double gbs, step_ns;
} link;

static link link_of(const device_model *model) {
    if (!model->peer_access) /* R59: twice over the bus, through memory of the host */
        return (link){model->d2h_gbs * model->h2d_gbs / (model->d2h_gbs + model->h2d_gbs),
                      2 * PCIE_STEP_NS};
    bool is_nvlink = model->peer_gbs > model->h2d_gbs; /* peers on the bus are no faster than it */
    return (link){model->peer_gbs * LINK_SHARE, is_nvlink ? NVLINK_STEP_NS : PCIE_STEP_NS};
}

static double traffic_ns(link over, mr_collective_traffic traffic) {
    return over.step_ns * traffic.steps + traffic.bytes / over.gbs;
}

uint64_t mr_virtual_meeting_ns(const vdevice *device, const mr_meeting *meeting) {
    link over = link_of(&device->gpu->model);
    double ns = traffic_ns(over, mr_collective_traffic_of(meeting));
    mr_collective_traffic tree;
    if (mr_collective_tree_of(meeting, &tree)) ns = fmin(ns, traffic_ns(over, tree));
    return whole_ns(COLLECTIVE_NS + ns);
}

static void prepare_member(const vdevice *device, body *b) {
    b->items = 1; /* the last member has more: meet.c */
    set_blocks(device, b, CHANNELS, CHANNEL_THREADS, 0);
}

static uint64_t output_bytes(const mr_command *command) {
    if (command->kind == MR_COMMAND_COPY) return command->u.copy.bytes;
    if (!command->operand_count) return 0;
    const mr_tensor *out = command->operands[0].tensor;
    return (uint64_t)out->numel * mr_dtype_size((mr_dtype)out->dtype);
}

engine_kind mr_virtual_engine_of(const mr_command *command) {
    switch (mr_engine_of(command)) {
    case MR_ENGINE_SM:
    case MR_ENGINE_COPY_DEVICE: return ENGINE_SM;
    case MR_ENGINE_COPY_IN:
    case MR_ENGINE_COPY_OUT:
    case MR_ENGINE_COPY_PEER: return ENGINE_COPY;
    case MR_ENGINE_NONE: break;
    }
    return ENGINE_NONE;
}

static uint32_t slice_count(const vgpu *gpu, const mr_command *command, const body *b) {
    uint64_t most = (uint64_t)gpu->set.slices;
    const mr_chooser *chooser = gpu->chooser;
    if (chooser->slices && !chooser->whole) {
        most = chooser->slices;
    } else if (b->duration < SLICED_NS) {
        if (chooser->timed || chooser->whole) return 1;
        uint64_t by_size = output_bytes(command) / SLICE_BYTES;
        if (by_size < most) most = by_size;
    }
    if (chooser->whole) return 1;
    if ((int64_t)most > b->items) most = (uint64_t)b->items;
    return most ? (uint32_t)most : 1;
}

/* The estimate before a user's launch is too short where its loops come back to the same bytes, or its atomic
 * operations to the same address. Its counts tell by how much, so each chunk ends as much later. */
uint64_t mr_virtual_stretch(const work *w, uint64_t duration) {
    const mr_command *command = w->command;
    const body *b = w->body;
    if (command->kind != MR_COMMAND_OP || command->u.op.row->id != MR_OP_kernel || b->failed)
        return 0;
    double counted = mr_kernel_time_ns(command);
    if (counted <= 0) return 0;
    const device_model *model = &w->queue->device->gpu->model;
    double whole = (command->launch ? model->graph_floor_ns : model->kernel_floor_ns) + counted;
    double missing = (whole - (double)b->duration) / (double)b->duration;
    return b->duration && missing > 0 ? whole_ns((double)duration * missing) : 0;
}

bool mr_virtual_prepare(work *w) {
    vdevice *device = w->queue->device;
    const mr_command *command = w->command;
    body *b = mr_slab_alloc(&device->gpu->bodies);
    if (!b) return false;
    memset(b, 0, sizeof *b);
    w->body = b;
    if (command->meeting) prepare_member(device, b);
    else if (command->kind == MR_COMMAND_OP) prepare_op(device, command, b);
    else prepare_copy(device, command, b);
    b->slices = slice_count(device->gpu, command, b);
    return true;
}
