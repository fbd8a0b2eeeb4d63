/* Functions of tensors that are made of several rows: the Lua module millrace.composites carries them out, here are their
 * usage lines. */
#include "bind/open.h"
#include "bind/tensor.h"

MR_FUNCTION(
    composite_amax, "amax", "x:amax([dim: integer|integer[] [, keepdim: boolean=false]]) -> tensor",
    "The greatest element over everything, a dim or several. In place of max, it returns no "
    "positions, and equal elements share the gradient.") {
    return mr_functional_call(L, "amax");
}

MR_FUNCTION(composite_amin, "amin",
            "x:amin([dim: integer|integer[] [, keepdim: boolean=false]]) -> tensor",
            "The least element, as amax gives the greatest.") {
    return mr_functional_call(L, "amin");
}

MR_FUNCTION(composite_logsumexp, "logsumexp",
            "x:logsumexp([dim: integer|integer[] [, keepdim: boolean=false]]) -> tensor",
            "The logarithm of the sum of exp(x), without overflow.") {
    return mr_functional_call(L, "logsumexp");
}

MR_FUNCTION(composite_isclose, "isclose",
            "a:isclose(b: tensor [, {rtol: number=1e-5, atol: number=1e-8, equal_nan: "
            "boolean=false}]) -> tensor",
            "True where |a - b| <= atol + rtol * |b|. mr.allclose gives one boolean for all "
            "elements.") {
    return mr_functional_call(L, "isclose");
}

MR_FUNCTION(composite_expand_as, "expand_as", "x:expand_as(other: tensor) -> tensor",
            "Returns x:expand(other.shape), a view.") {
    return mr_functional_call(L, "expand_as");
}

MR_FUNCTION(composite_view_as, "view_as", "x:view_as(other: tensor) -> tensor",
            "Returns x:view(other.shape).") {
    return mr_functional_call(L, "view_as");
}

MR_FUNCTION(composite_tile, "tile", "x:tile(times: integer...) -> tensor",
            "Repeats x so many times along each dim, as a copy (PyTorch's repeat, which is a word "
            "of Lua's). "
            "Numbers for fewer dims are those of "
            "the last ones; for more, x gets dims in front. They can also be one table.") {
    return mr_functional_call(L, "tile");
}

MR_FUNCTION(composite_repeat_interleave, "repeat_interleave",
            "x:repeat_interleave(times: integer [, dim: integer]) -> tensor",
            "Repeats each element so many times along the dim, one after the other, as a copy. "
            "Without a dim, x counts as a vector.") {
    return mr_functional_call(L, "repeat_interleave");
}

MR_FUNCTION(composite_diag, "diag", "x:diag([k: integer=0]) -> tensor",
            "Returns diagonal k of a matrix, as a copy. For a vector, returns the matrix with it "
            "as that diagonal and 0 elsewhere. Diagonal 1 is the one above the main diagonal.") {
    return mr_functional_call(L, "diag");
}

MR_FUNCTION(composite_one_hot, "one_hot", "index:one_hot([classes: integer]) -> tensor",
            "For each class in `index`, which counts from 1, a row of i64 that is 1 there and 0 "
            "elsewhere. Without `classes` it is the greatest index, for which the host waits. An "
            "index out of range is an error as in index_select.") {
    return mr_functional_call(L, "one_hot");
}

MR_FUNCTION(
    composite_median, "median",
    "x:median([dim: integer [, keepdim: boolean=false]]) -> values: tensor, positions: tensor",
    "The median: of an even number of elements the lower one of the two in the middle. NaN if any "
    "element is NaN. Without a dim it is that of all elements, and there are no positions.") {
    return mr_functional_call(L, "median");
}

MR_FUNCTION(
    composite_unique, "unique",
    "x:unique([{return_inverse: boolean=false, return_counts: boolean=false}]) -> values: "
    "tensor, inverse: tensor, counts: tensor",
    "The different values of x in order, as a vector. The inverse has for each element of x "
    "its position among them, and the counts say how often each one stands in x. What was "
    "not asked for is left out. The host waits for the number of values.") {
    return mr_functional_call(L, "unique");
}

MR_FUNCTION(
    composite_multinomial, "multinomial",
    "x:multinomial(count: integer [, replacement: boolean=false]) -> positions: tensor",
    "Draws so many positions (from 1), each with a probability in proportion to the element "
    "of x there, from each row of x. Without replacement no position is drawn twice. The "
    "host waits until the probabilities have been checked.") {
    return mr_functional_call(L, "multinomial");
}

MR_FUNCTION(composite_pad, "pad",
            "x:pad(sizes: integer[] [, mode: string=\"constant\" [, value: number=0]]) -> tensor",
            "More elements around x. The sizes are those in front and behind, for each dim from "
            "the last one on: {left, right, top, bottom}. The modes are \"constant\", "
            "\"reflect\", \"replicate\" and \"circular\"; with \"constant\", a size below 0 takes "
            "elements away. {mode=, value=} can be given instead.") {
    return mr_functional_call(L, "pad");
}

MR_FUNCTION(composite_unbind, "unbind", "x:unbind([dim: integer=1]) -> views: tensor[]",
            "A list of x:select(dim, i) for each index of the dim.") {
    return mr_functional_call(L, "unbind");
}

MR_FUNCTION(composite_meshgrid, "meshgrid",
            "mr.meshgrid(vector: tensor... [, {indexing: string=\"ij\"}]) -> grids: tensor[]",
            "For each vector a view in which its elements stand along its dim, and are repeated "
            "along the dims of the others. With the indexing \"xy\" the first two dims change "
            "places.") {
    return mr_functional_call(L, "meshgrid");
}

MR_FUNCTION(composite_einsum, "einsum", "mr.einsum(equation: string, operand: tensor...) -> tensor",
            "Products of the operands, summed over all dims that the result has not: "
            "mr.einsum(\"ij,jk->ik\", a, b) is the matrix product. A letter names a dim; the same "
            "letter twice in one operand takes its diagonal; `...` stands for further dims, which "
            "broadcast. Without an arrow, the result has the letters that stand once, in "
            "alphabetical order.") {
    return mr_functional_call(L, "einsum");
}

static const mr_function *const functions[] = {
    &composite_amax_function,        &composite_amin_function,
    &composite_logsumexp_function,   &composite_isclose_function,
    &composite_expand_as_function,   &composite_view_as_function,
    &composite_tile_function,        &composite_repeat_interleave_function,
    &composite_diag_function,        &composite_one_hot_function,
    &composite_median_function,      &composite_unique_function,
    &composite_multinomial_function, &composite_pad_function,
    &composite_unbind_function,      NULL};
static const mr_function *const only_functions[] = {&composite_einsum_function,
                                                    &composite_meshgrid_function, NULL};

const mr_class mr_composite_class = {"tensor", "Made of several operations.", functions, NULL,
                                     &mr_kind_tensor};
const mr_class mr_composite_functions_class = {"mr", "Made of several operations.", functions, NULL,
                                               NULL};
const mr_class mr_composite_only_functions_class = {"mr", "", only_functions, NULL, NULL};

void mr_open_composites(lua_State *L) {
    mr_class_extend(L, &mr_composite_class);
    mr_table_open(L, &mr_composite_functions_class);
    mr_table_open(L, &mr_composite_only_functions_class);
}
