/* Losses and distances that PyTorch makes of other operators, in the same steps, so that halves round alike. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"

static bp_tensor *reduced(work *w, const op_row *op, const bp_value *args, bp_tensor *t)
{
    int64_t how = arg_int(w->c, args, (uint32_t)schema_find(op->schema, "reduction"));
    if ((how != 1 && how != 2) || !work_ok(w)) /* PyTorch takes any other number for 0 here */
        return t;
    return how == 1 ? CALL(mean_default, T(t)) : CALL(sum_default, T(t));
}

static bp_tensor *body_l1_loss(work *w, const op_row *op, const bp_value *a)
{
    return reduced(w, op, a, CALL(abs_default, T(CALL(sub_tensor, a[0], a[1]))));
}
COMPOSED(l1_loss)

static bp_tensor *body_soft_margin_loss(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *t = CALL(mul_tensor, T(CALL(neg_default, a[1])), a[0]);
    return reduced(w, op, a, CALL(log1p_default, T(CALL(exp_default, T(t)))));
}
COMPOSED(soft_margin_loss)

static bp_tensor *body_hinge_embedding_loss(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *margin = CALL(clamp_min_default, T(CALL(rsub_scalar, a[0], a[2])), I(0));
    bp_tensor *left = CALL(where_scalarother, T(CALL(ne_scalar, a[1], I(1))), T(margin), I(0));
    bp_tensor *right = CALL(where_scalarother, T(CALL(ne_scalar, a[1], I(-1))), a[0], I(0));
    return reduced(w, op, a, CALL(add_tensor, T(left), T(right)));
}
COMPOSED(hinge_embedding_loss)

static bp_tensor *body_margin_ranking_loss(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *t = CALL(mul_tensor, T(CALL(neg_default, a[2])), T(CALL(sub_tensor, a[0], a[1])));
    return reduced(w, op, a, CALL(clamp_min_default, T(CALL(add_scalar, T(t), a[3])), I(0)));
}
COMPOSED(margin_ranking_loss)

static bp_tensor *body_kl_div(work *w, const op_row *op, const bp_value *a)
{
    if (arg_bool(a, 3)) {
        bp_tensor *away = CALL(sub_tensor, a[1], a[0]);
        return reduced(w, op, a, CALL(mul_tensor, T(CALL(exp_default, a[1])), T(away)));
    }
    bp_tensor *own = CALL(xlogy_tensor, a[1], a[1]);
    return reduced(w, op, a, CALL(sub_tensor, T(own), T(CALL(mul_tensor, a[1], a[0]))));
}
COMPOSED(kl_div)

static bp_tensor *body_entropy_with_logits(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *logs = CALL(log_sigmoid_default, a[0]);
    if (!arg_is_none(a, 3)) {
        bp_tensor *weight = CALL(mul_tensor, T(CALL(sub_scalar, a[3], I(1))), a[1]);
        logs = CALL(mul_tensor, T(logs), T(CALL(add_scalar, T(weight), I(1))));
    }
    bp_tensor *rest = CALL(mul_tensor, T(CALL(rsub_scalar, a[1], I(1))), a[0]);
    bp_tensor *loss = CALL(sub_tensor, T(rest), T(logs));
    return reduced(w, op, a, arg_is_none(a, 2) ? loss : CALL(mul_tensor, T(loss), a[2]));
}
COMPOSED(entropy_with_logits)

/* -- cross entropy -- */
/* weight as a tensor that broadcasts along the classes. */
static bp_tensor *along_classes(work *w, bp_tensor *weight, uint32_t rank)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        sizes[d] = d == (rank == 1 ? 0 : 1) ? weight->sizes[0] : dim_const(1);
    return compose_reshape(w, weight, rank, sizes);
}

/* All sizes but that of the classes, multiplied. */
static bp_dim samples_of(work *w, const bp_tensor *x, int64_t dim)
{
    bp_dim n = dim_const(1);
    for (uint32_t d = 0; d < x->rank; d++)
        n = d == dim ? n : dim_mul(w->c, n, x->sizes[d]);
    return n;
}

/* Targets are probabilities. */
static bp_tensor *soft_entropy(work *w, const bp_value *a, bp_tensor *logs, int64_t dim)
{
    bp_tensor *x = arg_tensor(a, 0), *target = arg_tensor(a, 1), *weight = arg_tensor(a, 2);
    int64_t how = arg_int(w->c, a, 3);
    double smoothing = arg_float(a, 5);
    if (smoothing > 0)
        target = CALL(add_scalar, T(CALL(mul_scalar, T(target), F(1 - smoothing))),
                      F(smoothing / (double)tensor_dim(x, (uint32_t)dim))); /* a share is a factor */
    bp_tensor *each = CALL(mul_tensor, T(logs), T(target));
    if (weight)
        each = CALL(mul_tensor, T(each), T(along_classes(w, weight, x->rank)));
    if (how == 0)
        return CALL(neg_default, T(compose_sum(w, each, 1, &dim, false)));
    bp_tensor *sum = CALL(neg_default, T(CALL(sum_default, T(each))));
    return how == 2 ? sum : CALL(div_scalar, T(sum), value_dim(samples_of(w, x, dim)));
}

/* What label smoothing adds: the mean over classes, ignored samples aside. */
static bp_tensor *smooth_part(work *w, const bp_value *a, bp_tensor *logs, int64_t dim)
{
    bp_tensor *weight = arg_tensor(a, 2);
    int64_t how = arg_int(w->c, a, 3);
    bp_tensor *each = weight ? CALL(mul_tensor, T(logs), T(along_classes(w, weight, logs->rank))) : logs;
    bp_tensor *ignored = CALL(eq_scalar, a[1], a[4]);
    each = CALL(neg_default, T(compose_sum(w, each, 1, &dim, false)));
    each = CALL(where_scalarself, T(ignored), F(0), T(each));
    if (how == 0)
        return each;
    bp_tensor *sum = CALL(sum_default, T(each)), *counted = CALL(logical_not_default, T(ignored));
    if (how == 2)
        return sum;
    if (!weight)
        return CALL(div_tensor, T(sum), T(CALL(sum_default, T(counted))));
    bp_tensor *classes = CALL(clamp_default, T(CALL(ravel_default, a[1])), I(0),
                              value_dim(dim_sub(w->c, weight->sizes[0], dim_const(1))));
    bp_tensor *picked = CALL(index_select_default, a[2], I(0), T(classes));
    picked = CALL(mul_tensor, T(picked), T(CALL(ravel_default, T(counted))));
    return CALL(div_tensor, T(sum), T(CALL(sum_default, T(picked))));
}

static bool same_sizes(const bp_tensor *a, const bp_tensor *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_eq(a->sizes[d], b->sizes[d]);
    return same;
}

static bp_tensor *body_cross_entropy_loss(work *w, const op_row *op, const bp_value *a)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t dim = x->rank == 1 ? 0 : 1;
    double smoothing = arg_float(a, 5);
    bp_tensor *logs = CALL(log_softmax_int, a[0], I(dim), value_dtype((bp_dtype)x->dtype));
    if (!logs)
        return NULL;
    if (same_sizes(x, arg_tensor(a, 1)))
        return soft_entropy(w, a, logs, dim);
    bp_tensor *loss = CALL(nll_loss_nd_default, T(logs), a[1], a[2], a[3], a[4]);
    if (!(smoothing > 0) || !loss)
        return loss;
    double share = smoothing / (double)tensor_dim(x, (uint32_t)dim); /* a factor */
    bp_tensor *part = CALL(mul_scalar, T(smooth_part(w, a, logs, dim)), F(share));
    return CALL(add_tensor, T(part), T(CALL(mul_scalar, T(loss), F(1 - smoothing))));
}
COMPOSED(cross_entropy_loss)

/* -- distances -- */
static bp_tensor *norm_along(work *w, bp_tensor *t, bp_value p, int64_t dim, bool keep)
{
    bp_value where = I(dim);
    return CALL(norm_scalaropt_dim, T(t), p, value_list(&where, 1), value_bool(keep));
}

static bp_tensor *distance(work *w, bp_value x, bp_value y, double p, double eps, bool keep)
{
    bp_tensor *away = CALL(add_scalar, T(CALL(sub_tensor, x, y)), F(eps));
    return away ? norm_along(w, away, F(p), (int64_t)away->rank - 1, keep) : NULL;
}

static bp_tensor *body_pairwise_distance(work *w, const op_row *op, const bp_value *a)
{
    (void)op;
    return distance(w, a[0], a[1], arg_float(a, 2), arg_float(a, 3), arg_bool(a, 4));
}
COMPOSED(pairwise_distance)

static bp_tensor *body_dist(work *w, const op_row *op, const bp_value *a)
{
    (void)op;
    return CALL(norm_scalar, T(CALL(sub_tensor, a[0], a[1])), a[2]);
}
COMPOSED(dist)

static bp_tensor *body_triplet_margin_loss(work *w, const op_row *op, const bp_value *a)
{
    double p = arg_float(a, 4), eps = arg_float(a, 5);
    bp_tensor *near = distance(w, a[0], a[1], p, eps, false), *far = distance(w, a[0], a[2], p, eps, false);
    if (arg_bool(a, 6))
        far = CALL(minimum_default, T(far), T(distance(w, a[1], a[2], p, eps, false)));
    bp_tensor *loss = CALL(sub_tensor, T(CALL(add_scalar, T(near), a[3])), T(far));
    return reduced(w, op, a, CALL(clamp_min_default, T(loss), I(0)));
}
COMPOSED(triplet_margin_loss)

/* x over its length along a dimension, which is at least eps. */
static bp_tensor *directed(work *w, bp_tensor *x, int64_t dim, bp_value eps)
{
    bp_tensor *length = x ? norm_along(w, x, F(2), dim, true) : NULL;
    return CALL(div_tensor, T(x), T(CALL(clamp_min_default, T(length), eps)));
}

static bp_tensor *body_cosine_similarity(work *w, const op_row *op, const bp_value *a)
{
    bp_dtype d = promote_args(w->c, a, 0, 1);
    if (!dtype_is_float(d)) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "expected a float type, got %s", dtype_get(d)->torch);
        return NULL;
    }
    bp_tensor *x = CALL(to_dtype, a[0], value_dtype(d)), *y = CALL(to_dtype, a[1], value_dtype(d));
    int64_t dim = arg_int(w->c, a, 2);
    bp_dim sizes[TENSOR_MAX_RANK]; /* both are expanded before their norms are taken: dim itself may grow */
    if (!x || !y || layout_broadcast(w->c, x->rank, x->sizes, y->rank, y->sizes, sizes) != BP_OK)
        return NULL;
    uint32_t rank = x->rank > y->rank ? x->rank : y->rank;
    bp_value both = value_dims(w->c, sizes, rank);
    x = CALL(expand_default, T(x), both, value_bool(false));
    y = CALL(expand_default, T(y), both, value_bool(false));
    if (!x || !y)
        return NULL;
    bp_tensor *product = CALL(mul_tensor, T(directed(w, x, dim, a[3])), T(directed(w, y, dim, a[3])));
    return product ? compose_sum(w, product, 1, &dim, false) : NULL;
}
COMPOSED(cosine_similarity)

static bp_tensor *body_cosine_embedding_loss(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *target = arg_tensor(a, 2);
    int64_t dim = target->rank;
    bp_tensor *dot = compose_sum(w, CALL(mul_tensor, a[0], a[1]), 1, &dim, false), *size[2];
    for (uint32_t i = 0; i < 2; i++)
        size[i] = CALL(add_scalar, T(compose_sum(w, CALL(mul_tensor, a[i], a[i]), 1, &dim, false)), F(1e-12));
    bp_tensor *scale = CALL(sqrt_default, T(CALL(mul_tensor, T(size[0]), T(size[1]))));
    bp_tensor *cosine = CALL(div_tensor, T(dot), T(scale));
    bp_tensor *far = CALL(clamp_min_default, T(CALL(sub_scalar, T(cosine), a[3])), I(0));
    bp_tensor *near = CALL(rsub_scalar, T(cosine), I(1));
    bp_tensor *left = CALL(where_scalarother, T(CALL(eq_scalar, a[2], I(1))), T(near), I(0));
    bp_tensor *right = CALL(where_scalarother, T(CALL(eq_scalar, a[2], I(-1))), T(far), I(0));
    return reduced(w, op, a, CALL(add_tensor, T(left), T(right)));
}
COMPOSED(cosine_embedding_loss)

/* -- rrelu: in training the noise is the slope of each element -- */

static bp_tensor *body_rrelu_backward(work *w, const op_row *op, const bp_value *args)
{
    (void)op;
    double slope = (scalar_float(arg_scalar(args, 3)) + scalar_float(arg_scalar(args, 4))) / 2;
    if (arg_bool(args, 5))
        return compose_two(w, ROW_mul_tensor, arg_tensor(args, 0), arg_tensor(args, 2));
    return CALL(leaky_relu_backward_default, args[0], args[1], F(slope), args[6]);
}
COMPOSED(rrelu_backward)
