/* The names of the operations, in the order of table.h, which has their rows. A file that only needs an id is compiled
 * anew only when there is another operation. */
#ifndef MR_OPS_IDS_H
#define MR_OPS_IDS_H

#define MR_OP_LIST(X)                                                                              \
    X(neg)                                                                                         \
    X(abs)                                                                                         \
    X(sign)                                                                                        \
    X(exp)                                                                                         \
    X(log)                                                                                         \
    X(sqrt)                                                                                        \
    X(rsqrt)                                                                                       \
    X(tanh)                                                                                        \
    X(sigmoid)                                                                                     \
    X(relu)                                                                                        \
    X(gelu)                                                                                        \
    X(floor)                                                                                       \
    X(ceil)                                                                                        \
    X(round)                                                                                       \
    X(reciprocal)                                                                                  \
    X(square)                                                                                      \
    X(logical_not)                                                                                 \
    X(exp2)                                                                                        \
    X(expm1)                                                                                       \
    X(log2)                                                                                        \
    X(log10)                                                                                       \
    X(log1p)                                                                                       \
    X(asin)                                                                                        \
    X(acos)                                                                                        \
    X(atan)                                                                                        \
    X(sinh)                                                                                        \
    X(cosh)                                                                                        \
    X(erf)                                                                                         \
    X(trunc)                                                                                       \
    X(frac)                                                                                        \
    X(silu)                                                                                        \
    X(softplus)                                                                                    \
    X(isnan)                                                                                       \
    X(isinf)                                                                                       \
    X(isfinite)                                                                                    \
    X(bitwise_not)                                                                                 \
    X(sin)                                                                                         \
    X(cos)                                                                                         \
    X(tan)                                                                                         \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(maximum)                                                                                     \
    X(minimum)                                                                                     \
    X(relu_backward)                                                                               \
    X(tanh_backward)                                                                               \
    X(sigmoid_backward)                                                                            \
    X(atan2)                                                                                       \
    X(bitwise_and)                                                                                 \
    X(bitwise_or)                                                                                  \
    X(bitwise_xor)                                                                                 \
    X(bitwise_left_shift)                                                                          \
    X(bitwise_right_shift)                                                                         \
    X(leaky_relu)                                                                                  \
    X(elu)                                                                                         \
    X(pow)                                                                                         \
    X(remainder)                                                                                   \
    X(fmod)                                                                                        \
    X(floor_divide)                                                                                \
    X(eq)                                                                                          \
    X(ne)                                                                                          \
    X(lt)                                                                                          \
    X(le)                                                                                          \
    X(gt)                                                                                          \
    X(ge)                                                                                          \
    X(logical_and)                                                                                 \
    X(logical_or)                                                                                  \
    X(logical_xor)                                                                                 \
    X(clamp)                                                                                       \
    X(lerp)                                                                                        \
    X(where)                                                                                       \
    X(masked_fill)                                                                                 \
    X(fill)                                                                                        \
    X(zero)                                                                                        \
    X(arange)                                                                                      \
    X(linspace)                                                                                    \
    X(eye)                                                                                         \
    X(uniform)                                                                                     \
    X(normal)                                                                                      \
    X(bernoulli)                                                                                   \
    X(randint)                                                                                     \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(prod)                                                                                        \
    X(max)                                                                                         \
    X(min)                                                                                         \
    X(any)                                                                                         \
    X(all)                                                                                         \
    X(argmax)                                                                                      \
    X(argmin)                                                                                      \
    X(norm)                                                                                        \
    X(var)                                                                                         \
    X(std)                                                                                         \
    X(softmax)                                                                                     \
    X(log_softmax)                                                                                 \
    X(index_select)                                                                                \
    X(gather)                                                                                      \
    X(embedding)                                                                                   \
    X(scatter)                                                                                     \
    X(scatter_add)                                                                                 \
    X(index_add)                                                                                   \
    X(cumsum)                                                                                      \
    X(cumprod)                                                                                     \
    X(sort)                                                                                        \
    X(argsort)                                                                                     \
    X(topk)                                                                                        \
    X(flip)                                                                                        \
    X(roll)                                                                                        \
    X(tril)                                                                                        \
    X(triu)                                                                                        \
    X(nonzero)                                                                                     \
    X(masked_select)                                                                               \
    X(matmul)                                                                                      \
    X(mm)                                                                                          \
    X(mv)                                                                                          \
    X(dot)                                                                                         \
    X(bmm)                                                                                         \
    X(randperm)                                                                                    \
    X(copy)                                                                                        \
    X(memset)                                                                                      \
    X(op)                                                                                          \
    X(spin)                                                                                        \
    X(conv2d)                                                                                      \
    X(conv2d_input)                                                                                \
    X(conv2d_weight)                                                                               \
    X(max_pool2d)                                                                                  \
    X(max_pool2d_backward)                                                                         \
    X(avg_pool2d)                                                                                  \
    X(avg_pool2d_backward)                                                                         \
    X(adaptive_avg_pool2d)                                                                         \
    X(adaptive_avg_pool2d_backward)                                                                \
    X(nll_loss)                                                                                    \
    X(nll_loss_backward)                                                                           \
    X(sgd_step)                                                                                    \
    X(momentum_step)                                                                               \
    X(adam_step)                                                                                   \
    X(rmsprop_step)                                                                                \
    X(rmsprop_momentum_step)                                                                       \
    X(gather_grads)                                                                                \
    X(kernel)

/* The row `add` is mr_ops[MR_OP_add]. MR_OP_NONE is the id of all rows outside the table; code with data for each id
 * has none for these. */
typedef enum {
    MR_OP_NONE,
#define X(name) MR_OP_##name,
    MR_OP_LIST(X)
#undef X
        MR_OP_COUNT,
    MR_OP_FIRST = MR_OP_NONE + 1,
} mr_op_id;

#endif
