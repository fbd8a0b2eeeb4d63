/* Convolutions as sums over taps (network.h): which rows, columns and taps of the operands meet. */
#include "ops/ids.h"
#include "ops/network.h"

int64_t mr_window_positions(const mr_window *w, int dim, int64_t size) {
    int64_t covered = (int64_t)w->dilation[dim] * (w->size[dim] - 1) + 1,
            room = size + 2 * (int64_t)w->padding[dim] - covered;
    return room < 0 ? 0 : room / w->stride[dim] + 1;
}

/* The layout that both kinds have in common: `in` is on the side of conv2d's input, `out` on that of its result. */
static void lay_out(const mr_window *window, const mr_tensor *in, const mr_tensor *out,
                    const mr_tensor *w, mr_conv *c) {
    *c = (mr_conv){.images = in->shape[0],
                   .groups = window->groups,
                   .channels = in->shape[1] / window->groups,
                   .outputs = out->shape[1] / window->groups,
                   .source_image = in->stride[0],
                   .source_channel = in->stride[1],
                   .source_group = in->shape[1] / window->groups * in->stride[1],
                   .out_image = out->stride[0],
                   .out_output = out->stride[1],
                   .out_group = out->shape[1] / window->groups * out->stride[1]};
    for (int d = 0; d < 2; d++) {
        c->taps[d] = window->size[d];
        c->grid[d] = out->shape[2 + d];
        c->source_size[d] = in->shape[2 + d];
        c->source_stride[d] = in->stride[2 + d];
        c->out_stride[d] = out->stride[2 + d];
        c->step[d] = window->stride[d];
        c->tap_step[d] = window->dilation[d];
        c->start[d] = -(int64_t)window->padding[d];
    }
    if (!w) return;
    c->weight_output = w->stride[0];
    c->weight_channel = w->stride[1];
    c->weight_group = c->outputs * w->stride[0];
    for (int d = 0; d < 2; d++) c->weight_tap[d] = w->stride[2 + d];
}

static void swap(int64_t *a, int64_t *b) {
    int64_t t = *a;
    *a = *b;
    *b = t;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* In one dim: the positions of the input from `first` on, a stride apart, and the taps that meet them. Tap t of
 * position q of the result is at q * stride + t * dilation - padding of the input. */
static void take_remainder(const mr_window *window, int d, int64_t first, mr_conv *c) {
    int64_t stride = window->stride[d], dilation = window->dilation[d],
            shifted = first + window->padding[d], taps = window->size[d], tap = 0;
    while (tap < taps && (shifted - tap * dilation) % stride != 0) tap++;
    int64_t apart = stride / common_divisor(stride, dilation);
    c->taps[d] = tap < taps ? (taps - tap - 1) / apart + 1 : 0;
    c->grid[d] = c->source_size[d] > first ? (c->source_size[d] - first - 1) / stride + 1 : 0;
    c->step[d] = 1;
    c->start[d] = c->taps[d] ? (shifted - tap * dilation) / stride : 0;
    c->tap_step[d] = -(apart * dilation) / stride;
    c->weight_offset += tap < taps ? tap * c->weight_tap[d] : 0;
    c->weight_tap[d] *= apart;
    c->out_offset += first * c->source_stride[d];
}

static bool is_input_gradient(const mr_command *command) {
    return command->u.op.row->id == MR_OP_conv2d_input;
}

/* Beyond the size there are remainders that no row has. */
static int64_t remainders(const mr_command *command, int d) {
    int64_t stride = mr_params_of(command).conv.window.stride[d],
            size = command->operands[0].tensor->shape[2 + d];
    return stride < size ? stride : size;
}

int64_t mr_conv_parts(const mr_command *command) {
    return is_input_gradient(command) ? remainders(command, 0) * remainders(command, 1) : 1;
}

void mr_conv_part(const mr_command *command, int64_t part, mr_conv *c) {
    mr_window window = mr_params_of(command).conv.window;
    const mr_tensor *out = command->operands[0].tensor, *in = command->operands[1].tensor,
                    *w = command->operands[2].tensor;
    if (!is_input_gradient(command)) {
        lay_out(&window, in, out, w, c);
        return;
    }
    lay_out(&window, out, in, w, c);
    int64_t across = remainders(command, 1);
    take_remainder(&window, 0, part / across, c);
    take_remainder(&window, 1, part % across, c);
    /* The gradient is the source now, and the sum goes over the outputs of conv2d. */
    swap(&c->outputs, &c->channels);
    swap(&c->weight_output, &c->weight_channel);
    c->weight_group = c->channels * c->weight_channel;
    swap(&c->source_image, &c->out_image);
    swap(&c->source_channel, &c->out_output);
    swap(&c->source_group, &c->out_group);
    for (int d = 0; d < 2; d++) {
        int64_t stride = window.stride[d] * c->source_stride[d];
        c->source_stride[d] = c->out_stride[d];
        c->out_stride[d] = stride;
        c->source_size[d] = in->shape[2 + d];
    }
}

void mr_conv_weight(const mr_command *command, mr_conv *out_conv) {
    mr_window window = mr_params_of(command).conv.window;
    lay_out(&window, command->operands[2].tensor, command->operands[1].tensor, NULL, out_conv);
}

/* Enough chunks to occupy a GPU, and no more memory for them than MOST_RESULTS. */
int64_t mr_conv_weight_chunks(int64_t positions, int64_t results) {
    enum { TILE = 64 * 128, TILES_WANTED = 256, FEWEST = 256, MOST_RESULTS = 1 << 23 };
    int64_t tiles = results > TILE ? (results + TILE - 1) / TILE : 1,
            chunks = (TILES_WANTED + tiles - 1) / tiles;
    int64_t most = MOST_RESULTS / (results ? results : 1), useful = positions / FEWEST;
    if (chunks > most) chunks = most;
    if (chunks > useful) chunks = useful;
    return chunks < 1 ? 1 : chunks;
}
