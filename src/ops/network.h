/* Inside src/ops and src/cuda: the operations of neural networks. The parameters of a command of these families,
 * arranged for the loops that carry it out. CPU bodies and CUDA kernels use the same description. */
#ifndef MR_OPS_NETWORK_H
#define MR_OPS_NETWORK_H

#include "ops/op.h"
#include "ops/params.h"
#include "ops/pool_window.h"

/* ---- convolutions */

/* A sum of products over the taps of a window that moves over a grid of positions. For each image, group, output o and
 * position (y, x) of the grid:
 *
 *     result = sum over channels c and taps (a, b) of weight(group, o, c, a, b) * source(image, group, c, v, u)
 *         where v = y * step[0] + a * tap_step[0] + start[0], u likewise with [1]; outside the source it is 0
 *
 * The taps of one result are added in the order of c, a, b, each product fused with its addition: backends agree to the
 * last bit. All offsets and strides count elements from the tensor's first. */
typedef struct {
    int64_t images, groups, outputs, channels, taps[2];
    int64_t grid[2];
    int64_t source_size[2], step[2], tap_step[2], start[2];
    int64_t source_image, source_group, source_channel, source_stride[2];
    int64_t weight_offset, weight_group, weight_output, weight_channel, weight_tap[2];
    int64_t out_offset, out_image, out_group, out_output, out_stride[2];
} mr_conv;

/* conv2d (operands: out, x, w [, bias]) is one such sum. conv2d_input (out, gradient, w) is one for each remainder that
 * a row and a column leave modulo the stride. Only the taps of that remainder touch it. */
int64_t mr_conv_parts(const mr_command *command);
void mr_conv_part(const mr_command *command, int64_t part, mr_conv *out_part);

/* conv2d_weight (operands: out, gradient, x) sums over the positions of all images. They are cut into chunks, by a rule
 * that asks for nothing but the shapes, and operand 0 gets the sum of each: [chunk][O][C / groups][kh][kw], in f32 or
 * f64. The row `sum` adds the chunks up. The mr_conv is that of conv2d, with the gradient in the place of its
 * result. */
void mr_conv_weight(const mr_command *command, mr_conv *out_conv);
int64_t mr_conv_weight_chunks(int64_t positions, int64_t results);

/* Elements that a dim of the result has. */
int64_t mr_window_positions(const mr_window *w, int dim, int64_t size);

/* ---- pools
 *
 *   max_pool2d           operands: out, x [, positions: i64, in a plane, from 1]
 *   max_pool2d_backward  out, gradient, positions
 *   avg_pool2d, adaptive_avg_pool2d                      out, x
 *   avg_pool2d_backward, adaptive_avg_pool2d_backward    out, gradient */

/* How rows (0) and columns (1) of the pool's input and output meet. */
void mr_pool_lines(const mr_command *command, mr_pool_line out_lines[2]);

/* ---- losses: nll_loss (out, x, target [, weight], total), nll_loss_backward (out, gradient, target
 * [, weight], total)
 *
 * Targets count from 1. `total` is the sum of the weights of what counts; without a reduction there is none. */

/* x, or the result of nll_loss_backward, as one of the target's shape: without its dim of classes, whose stride is
 * *out_step. `classes`: how many there are. */
void mr_loss_classes(const mr_tensor *x, mr_tensor *out_rest, int64_t *out_classes,
                     int64_t *out_step);

#endif
