#include "parallel/matmul-strategy.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

/* What is derived from shardings against what it does to values.
 *
 * The reference keeps, for each device and each element of an array, whether the device has it and
 * which value it has there. An element of A[I_X, J_Y] is on the device (x, y) when i is in part x
 * of I and j in part y of J. Devices multiply what they have; collectives add up or join what the
 * devices of a group have. The derived collectives are right when in the end each device has what
 * C's sharding says, no more and no less, and C[g,i,k] = sum over j of A[g,i,j] B[g,j,k] All values
 * are small whole numbers, so doubles are exact. */

enum
{
  MAX_DEVICES = 8,
  MAX_ELEMENTS = 64,
};

/* As ck_assert(), which writes a mark each time; there are millions here. */
#define must(claim) ((claim) ? (void) 0 : (void) (ck_abort_msg ("%s", #claim), 0))

/* An array on all devices. */
typedef struct
{
  unsigned n_dims;
  unsigned size[POD_MAX_TENSOR_DIMS];
  unsigned n_elements;
  bool has[MAX_DEVICES][MAX_ELEMENTS];
  double value[MAX_DEVICES][MAX_ELEMENTS];
} Spread;

/* ---- devices: the first axis is the slowest ---- */

static unsigned
coordinate (const PodArrayMesh *mesh, unsigned device, unsigned axis)
{
  for (unsigned a = mesh->n_axes; a-- > axis + 1;)
    device /= mesh->size[a];
  return device % mesh->size[axis];
}

static unsigned
moved (const PodArrayMesh *mesh, unsigned device, unsigned axis, unsigned to)
{
  unsigned stride = 1;

  for (unsigned a = mesh->n_axes; a-- > axis + 1;)
    stride *= mesh->size[a];
  return device - coordinate (mesh, device, axis) * stride + to * stride;
}

static unsigned
index_of (const Spread *spread, unsigned element, unsigned dim)
{
  for (unsigned d = spread->n_dims; d-- > dim + 1;)
    element /= spread->size[d];
  return element % spread->size[dim];
}

/* ---- an array as its sharding says ---- */

static bool
should_have (const PodArray *array, const PodArrayMesh *mesh, const Spread *spread, unsigned device,
             unsigned element)
{
  for (unsigned d = 0; d < array->n_dims; d++)
    {
      unsigned part = 0, n_parts = 1, block;

      for (unsigned i = 0; i < array->axes[d].n; i++)
        {
          unsigned axis = array->axes[d].axis[i];

          part = part * mesh->size[axis] + coordinate (mesh, device, axis);
          n_parts *= mesh->size[axis];
        }
      block = spread->size[d] / n_parts;
      if (index_of (spread, element, d) / block != part)
        return false;
    }
  return true;
}

static void
spread_init (Spread *spread, const PodArray *array)
{
  memset (spread, 0, sizeof *spread);
  spread->n_dims = array->n_dims;
  spread->n_elements = 1;
  for (unsigned d = 0; d < array->n_dims; d++)
    {
      spread->size[d] = (unsigned) array->size[d];
      spread->n_elements *= spread->size[d];
    }
  must (spread->n_elements <= MAX_ELEMENTS);
}

static void
spread_fill (Spread *spread, const PodArray *array, const PodArrayMesh *mesh, unsigned seed)
{
  spread_init (spread, array);
  for (unsigned device = 0; device < pod_array_mesh_n_devices (mesh); device++)
    for (unsigned e = 0; e < spread->n_elements; e++)
      {
        spread->has[device][e] = should_have (array, mesh, spread, device, e);
        spread->value[device][e] = (e * 7 + seed) % 11 + 1;
      }
}

static unsigned
n_held (const Spread *spread, unsigned device)
{
  unsigned n = 0;

  for (unsigned e = 0; e < spread->n_elements; e++)
    n += spread->has[device][e];
  return n;
}

/* Which indices of a dimension the device has: a block without gaps, or what is gathered would have
 * to be sorted. */
static void
held_range (const Spread *spread, unsigned device, unsigned dim, unsigned *out_first,
            unsigned *out_n)
{
  bool is_held[MAX_ELEMENTS] = { false };

  *out_n = 0;
  for (unsigned e = 0; e < spread->n_elements; e++)
    if (spread->has[device][e])
      is_held[index_of (spread, e, dim)] = true;
  for (unsigned i = spread->size[dim]; i-- > 0;)
    if (is_held[i])
      {
        *out_first = i;
        ++*out_n;
      }
  must (*out_n > 0);
  for (unsigned i = 0; i < *out_n; i++)
    must (is_held[*out_first + i]);
}

/* ---- what the steps do ---- */

static void
keep_part (Spread *spread, const PodArrayMesh *mesh, unsigned axis, unsigned dim)
{
  for (unsigned device = 0; device < pod_array_mesh_n_devices (mesh); device++)
    {
      unsigned first = 0, n, size;

      held_range (spread, device, dim, &first, &n);
      must (n % mesh->size[axis] == 0);
      size = n / mesh->size[axis];
      first += coordinate (mesh, device, axis) * size;
      for (unsigned e = 0; e < spread->n_elements; e++)
        spread->has[device][e]
            &= index_of (spread, e, dim) >= first && index_of (spread, e, dim) < first + size;
    }
}

/* All devices along the axis join what they have; no element may come from two. */
static void
join (Spread *spread, const PodArrayMesh *mesh, unsigned axis)
{
  Spread *before = g_memdup2 (spread, sizeof *spread);

  for (unsigned device = 0; device < pod_array_mesh_n_devices (mesh); device++)
    for (unsigned e = 0; e < spread->n_elements; e++)
      {
        unsigned n_sources = 0;

        for (unsigned to = 0; to < mesh->size[axis]; to++)
          {
            unsigned source = moved (mesh, device, axis, to);

            if (!before->has[source][e])
              continue;
            n_sources++;
            spread->has[device][e] = true;
            spread->value[device][e] = before->value[source][e];
          }
        must (n_sources <= 1);
      }
  g_free (before);
}

/* All devices along the axis add up what they have, which must be parts of the same. */
static void
add_up (Spread *spread, const PodArrayMesh *mesh, unsigned axis)
{
  Spread *before = g_memdup2 (spread, sizeof *spread);

  for (unsigned device = 0; device < pod_array_mesh_n_devices (mesh); device++)
    for (unsigned e = 0; e < spread->n_elements; e++)
      {
        spread->value[device][e] = 0;
        for (unsigned to = 0; to < mesh->size[axis]; to++)
          {
            unsigned source = moved (mesh, device, axis, to);

            must (before->has[source][e] == before->has[device][e]);
            spread->value[device][e] += before->value[source][e];
          }
      }
  g_free (before);
}

static void
apply_step (const PodShardStep *step, const PodArrayMesh *mesh, Spread *spread,
            double element_bytes)
{
  unsigned before = n_held (spread, 0);

  for (unsigned i = 0; i < step->n_moves && step->kind == POD_STEP_PERMUTE; i++)
    join (spread, mesh, step->moves[i].axis);
  for (unsigned i = 0; i < step->n_moves; i++)
    {
      const PodAxisMove *move = &step->moves[i];

      if (step->kind == POD_STEP_ALL_GATHER || step->kind == POD_STEP_ALL_TO_ALL)
        join (spread, mesh, move->axis);
      if (step->kind == POD_STEP_REDUCE_SCATTER || step->kind == POD_STEP_ALL_REDUCE)
        add_up (spread, mesh, move->axis);
      if (move->to >= 0)
        keep_part (spread, mesh, move->axis, (unsigned) move->to);
    }
  if (step->kind != POD_STEP_SLICE) /* bytes: the gathered buffer, else what there was before */
    ck_assert_double_eq (step->payload_bytes,
                         element_bytes
                             * (step->kind == POD_STEP_ALL_GATHER ? n_held (spread, 0) : before));
}

/* ---- products ---- */

/* The element of @spread at the indices that the letters have. */
static unsigned
element_at (const PodArray *array, const Spread *spread, const unsigned index_of_letter[128])
{
  unsigned element = 0;

  for (unsigned d = 0; d < array->n_dims; d++)
    element = element * spread->size[d] + index_of_letter[(unsigned char) array->dim[d]];
  return element;
}

/* Sets the letters of @array to what @element stands for. */
static void
set_letters (const PodArray *array, const Spread *spread, unsigned element,
             unsigned index_of_letter[128])
{
  for (unsigned d = 0; d < array->n_dims; d++)
    index_of_letter[(unsigned char) array->dim[d]] = index_of (spread, element, d);
}

/* sum over J of what a device has (@is_whole: of all there is); *out_n counts the terms. */
static double
dot (const PodEinsum *einsum, const Spread *lhs, const Spread *rhs, unsigned device,
     unsigned element, const Spread *out, unsigned *out_n)
{
  unsigned letters[128] = { 0 };
  double sum = 0;
  int j = -1;

  for (unsigned d = 0; d < einsum->lhs.n_dims; d++)
    if (pod_array_find (&einsum->out, einsum->lhs.dim[d]) < 0)
      j = (int) d;
  must (j >= 0);
  set_letters (&einsum->out, out, element, letters);
  *out_n = 0;
  for (unsigned i = 0; i < lhs->size[j]; i++)
    {
      unsigned left, right;

      letters[(unsigned char) einsum->lhs.dim[j]] = i;
      left = element_at (&einsum->lhs, lhs, letters);
      right = element_at (&einsum->rhs, rhs, letters);
      if (!lhs->has[device][left] || !rhs->has[device][right])
        continue;
      sum += lhs->value[device][left] * rhs->value[device][right];
      ++*out_n;
    }
  return sum;
}

static void
multiply (const PodEinsum *einsum, const PodArrayMesh *mesh, const Spread *lhs, const Spread *rhs,
          Spread *out, double flops)
{
  for (unsigned device = 0; device < pod_array_mesh_n_devices (mesh); device++)
    {
      unsigned n_products = 0;

      for (unsigned e = 0; e < out->n_elements; e++)
        {
          unsigned n;

          out->value[device][e] = dot (einsum, lhs, rhs, device, e, out, &n);
          out->has[device][e] = n > 0;
          n_products += n;
        }
      must (flops == 2.0 * n_products);
    }
}

static double
true_value (const PodEinsum *einsum, const Spread *lhs, const Spread *rhs, unsigned element,
            const Spread *out)
{
  Spread *left = g_memdup2 (lhs, sizeof *lhs), *right = g_memdup2 (rhs, sizeof *rhs);
  unsigned n;
  double value;

  memset (left->has, true, sizeof left->has);
  memset (right->has, true, sizeof right->has);
  value = dot (einsum, left, right, 0, element, out, &n);
  g_free (left);
  g_free (right);
  return value;
}

static void
check_result (const PodEinsum *einsum, const PodArrayMesh *mesh, const double *truth, Spread *out)
{
  for (unsigned axis = 0; axis < mesh->n_axes; axis++)
    if (einsum->out.unreduced >> axis & 1)
      add_up (out, mesh, axis);
  for (unsigned device = 0; device < pod_array_mesh_n_devices (mesh); device++)
    for (unsigned e = 0; e < out->n_elements; e++)
      {
        must (out->has[device][e] == should_have (&einsum->out, mesh, out, device, e));
        if (out->has[device][e])
          must (out->value[device][e] == truth[e]);
      }
}

/* ---- every strategy of one sharded matmul ---- */

static void
run_strategy (const PodEinsum *einsum, const PodArrayMesh *mesh, const PodMatmulStrategy *strategy,
              const double *truth)
{
  Spread *spread = g_new (Spread, POD_N_OPERANDS);
  const double bytes = pod_dtype_bytes (einsum->lhs.dtype);

  spread_fill (&spread[POD_OPERAND_LHS], &einsum->lhs, mesh, 3);
  spread_fill (&spread[POD_OPERAND_RHS], &einsum->rhs, mesh, 5);
  spread_init (&spread[POD_OPERAND_OUT], &einsum->out);
  ck_assert_double_eq (
      strategy->argument_bytes,
      bytes * (n_held (&spread[POD_OPERAND_LHS], 0) + n_held (&spread[POD_OPERAND_RHS], 0)));
  for (unsigned s = 0; s < strategy->n_steps; s++)
    {
      const PodShardStep *step = &strategy->steps[s];

      must ((step->operand == POD_OPERAND_OUT) == (s >= strategy->n_before));
      if (s == strategy->n_before)
        multiply (einsum, mesh, &spread[POD_OPERAND_LHS], &spread[POD_OPERAND_RHS],
                  &spread[POD_OPERAND_OUT], strategy->flops);
      apply_step (step, mesh, &spread[step->operand], bytes);
    }
  if (strategy->n_steps == strategy->n_before)
    multiply (einsum, mesh, &spread[POD_OPERAND_LHS], &spread[POD_OPERAND_RHS],
              &spread[POD_OPERAND_OUT], strategy->flops);
  check_result (einsum, mesh, truth, &spread[POD_OPERAND_OUT]);
  must (strategy->output_bytes == bytes * n_held (&spread[POD_OPERAND_OUT], 0));
  g_free (spread);
}

/* Returns how many strategies there are. */
static unsigned
run_all (const char *text, const PodArrayMesh *mesh, const char *shape)
{
  PodEinsum einsum;
  g_autoptr (PodMatmulStrategies) all = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree Spread *spread = g_new (Spread, POD_N_OPERANDS);
  g_autofree double *truth = NULL;

  ck_assert_msg (pod_einsum_parse (text, mesh, &einsum, &error), "%s: %s", text,
                 error != NULL ? error->message : "");
  ck_assert_msg (pod_einsum_set_shape (&einsum, mesh, shape, &error), "%s: %s", text,
                 error != NULL ? error->message : "");
  einsum.lhs.dtype = einsum.rhs.dtype = einsum.out.dtype = POD_DTYPE_BF16;
  spread_fill (&spread[0], &einsum.lhs, mesh, 3);
  spread_fill (&spread[1], &einsum.rhs, mesh, 5);
  spread_init (&spread[2], &einsum.out);
  truth = g_new (double, spread[2].n_elements);
  for (unsigned e = 0; e < spread[2].n_elements; e++)
    truth[e] = true_value (&einsum, &spread[0], &spread[1], e, &spread[2]);
  all = pod_matmul_strategies_new (&einsum, mesh, NULL, &error);
  if (einsum.out.unreduced != 0 && all == NULL)
    return 0;
  ck_assert_msg (all != NULL, "%s: %s", text, error != NULL ? error->message : "");
  for (guint i = 0; i < all->strategies->len; i++)
    run_strategy (&einsum, mesh, &g_array_index (all->strategies, PodMatmulStrategy, i), truth);
  return all->strategies->len;
}

/* All ways to cut two dimensions by two axes: each axis cuts the first, the second or none, in
 * either order on one. */
static const char *const two_dims[] = {
  "%c,%c",     "%c_X,%c",  "%c,%c_X",  "%c_Y,%c",  "%c,%c_Y",  "%c_X,%c_Y",
  "%c_Y,%c_X", "%c_XY,%c", "%c_YX,%c", "%c,%c_XY", "%c,%c_YX",
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static char *
array_text (const char *format, char first, char second)
{
  return g_strdup_printf (format, first, second);
}
#pragma GCC diagnostic pop

static PodArrayMesh
mesh_of (const char *text)
{
  PodArrayMesh mesh;

  ck_assert (pod_array_mesh_parse (text, &mesh, NULL));
  return mesh;
}

/* 11^3 matmuls, each by 4^2 strategies: X and Y cut I, J, K or nothing. All are legal where all
 * sizes divide. */
START_TEST (test_all_pairs)
{
  PodArrayMesh mesh = mesh_of ("X=2,Y=3");

  for (unsigned a = 0; a < G_N_ELEMENTS (two_dims); a++)
    for (unsigned b = 0; b < G_N_ELEMENTS (two_dims); b++)
      for (unsigned c = 0; c < G_N_ELEMENTS (two_dims); c++)
        {
          g_autofree char *lhs = array_text (two_dims[a], 'I', 'J');
          g_autofree char *rhs = array_text (two_dims[b], 'J', 'K');
          g_autofree char *out = array_text (two_dims[c], 'I', 'K');
          g_autofree char *text = g_strdup_printf ("A[%s] * B[%s] -> C[%s]", lhs, rhs, out);

          ck_assert_uint_eq (run_all (text, &mesh, "I=6,J=6,K=6"), 16);
        }
}
END_TEST

/* Sums that stay unreduced: X must cut J, Y may cut anything; and operands with a dimension of
 * independent matmuls. */
START_TEST (test_unreduced_and_batch)
{
  static const char *const cuts[] = { "", "_X" };
  PodArrayMesh mesh = mesh_of ("X=2,Y=2");

  ck_assert_uint_eq (run_all ("A[I,J_X] * B[J_X,K] -> C[I,K]{U_X}", &mesh, "I=4,J=4,K=4"), 4);
  ck_assert_uint_eq (run_all ("A[I_Y,J_X] * B[J,K_X] -> C[I,K_Y]{U_X}", &mesh, "I=4,J=4,K=4"), 4);
  ck_assert_uint_eq (run_all ("A[I,J] * B[J,K] -> C[I,K]{U_XY}", &mesh, "I=4,J=4,K=4"), 1);
  for (unsigned code = 0; code < 64; code++)
    {
      /* two bits an array: which of its three dimensions X cuts, 3: none; Y cuts G of A and J of B
       */
      unsigned a = code & 3, b = code >> 2 & 3, c = code >> 4;
      g_autofree char *text = g_strdup_printf (
          "A[G_Y%s,I%s,J%s] * B[G%s,J_Y%s,K%s] -> C[G%s,I%s,K%s]", a == 0 ? "X" : "", cuts[a == 1],
          cuts[a == 2], cuts[b == 0], b == 1 ? "X" : "", cuts[b == 2], cuts[c == 0], cuts[c == 1],
          cuts[c == 2]);

      ck_assert_uint_eq (run_all (text, &mesh, "G=4,I=4,J=4,K=4"), 25);
    }
}
END_TEST

/* Three axes on one dimension, in all orders, and an axis of one device, which changes nothing. */
START_TEST (test_orders)
{
  static const char *const orders[] = { "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "XY", "ZX" };
  PodArrayMesh mesh = mesh_of ("X=2,Y=2,Z=2,W=1");

  for (unsigned a = 0; a < G_N_ELEMENTS (orders); a++)
    for (unsigned c = 0; c < G_N_ELEMENTS (orders); c++)
      {
        g_autofree char *text
            = g_strdup_printf ("A[I_%sW,J] * B[J_W,K] -> C[I,K_%s]", orders[a], orders[c]);

        ck_assert_uint_eq (run_all (text, &mesh, "I=8,J=8,K=8"), 64);
      }
}
END_TEST

/* ---- the four cases ---- */

/* pod_sharded_matmul() knows sets of axes without an order. Here axis a owns bit a of an index: the
 * device has index i of a dimension that the axes in S cut when bit a of i is its coordinate on a,
 * for all a in S. */
static bool
has_index (unsigned axes, unsigned device, unsigned i)
{
  return ((i ^ device) & axes) == 0;
}

static unsigned
a_value (unsigned i, unsigned j)
{
  return i * 5 + j * 3 + 1;
}

static unsigned
b_value (unsigned j, unsigned k)
{
  return j * 2 + k * 7 + 1;
}

/* Runs what was derived, on 4 devices whose number is X + 2Y, over matrices of 4 x 4. */
static void
run_derived (const PodSharding *lhs, const PodSharding *rhs, const PodSharding *out,
             const PodShardedMatmul *derived)
{
  const unsigned sum_axes = derived->reduce_scatter | derived->all_reduce;
  const unsigned rows = lhs->axes[0] & ~derived->gather_lhs,
                 columns = rhs->axes[1] & ~derived->gather_rhs;
  const unsigned left = lhs->axes[1] & ~derived->gather_lhs,
                 right = rhs->axes[0] & ~derived->gather_rhs;
  unsigned part[4][4][4] = { 0 };

  ck_assert_uint_eq (left,
                     right); /* both operands bring the same j, and what is cut there is summed */
  must (left == sum_axes);
  must ((derived->reduce_scatter & derived->all_reduce) == 0);
  for (unsigned device = 0; device < 4; device++)
    for (unsigned i = 0; i < 4; i++)
      for (unsigned k = 0; k < 4; k++)
        for (unsigned j = 0; j < 4; j++)
          if (has_index (left, device, j))
            part[device][i][k] += a_value (i, j) * b_value (j, k);
  for (unsigned device = 0; device < 4; device++)
    for (unsigned i = 0; i < 4; i++)
      for (unsigned k = 0; k < 4; k++)
        {
          unsigned truth = 0, sum = 0;
          bool is_wanted
              = has_index (out->axes[0], device, i) && has_index (out->axes[1], device, k);

          for (unsigned j = 0; j < 4; j++)
            truth += a_value (i, j) * b_value (j, k);
          for (unsigned other = 0; other < 4; other++)
            if (((other ^ device) & ~sum_axes) == 0)
              sum += part[other][i][k];
          /* the product's cut, without what is gathered in the end, leaves all that is wanted */
          if (is_wanted)
            {
              must (sum == truth);
              must (has_index (rows & ~derived->gather_out, device, i)
                    && has_index (columns & ~derived->gather_out, device, k));
            }
        }
  /* one axis cuts one dimension of the product, and it stays cut unless it is gathered */
  must ((rows & columns) == 0);
  must (((rows | columns) & ~derived->gather_out & ~(out->axes[0] | out->axes[1])) == 0);
  must ((derived->gather_out & (out->axes[0] | out->axes[1])) == 0);
}

/* Digit @axis of @code in base 3: what the axis cuts. */
static PodSharding
sharding_of (const char *dims, unsigned code)
{
  unsigned axes[3] = { 0 };

  for (unsigned axis = 0; axis < 2; axis++, code /= 3)
    axes[code % 3] |= 1U << axis;
  return pod_sharding (dims, axes[1], axes[2]);
}

/* All 9^3 shardings of A, B and C on X and Y: right, or refused because the result is cut where
 * nothing is. */
START_TEST (test_four_cases)
{
  unsigned n_refused = 0;

  for (unsigned code = 0; code < 9 * 9 * 9; code++)
    {
      PodSharding lhs = sharding_of ("IJ", code % 9), rhs = sharding_of ("JK", code / 9 % 9),
                  out = sharding_of ("IK", code / 81);
      PodShardedMatmul derived;
      g_autoptr (GError) error = NULL;

      if (pod_sharded_matmul (&lhs, &rhs, &out, &derived, &error))
        run_derived (&lhs, &rhs, &out, &derived);
      else
        {
          ck_assert (strstr (error->message, "on which no operand shards it") != NULL);
          n_refused++;
        }
    }
  /* of the 27 of one axis 10 are refused: C is cut on I or K, and A and B cut nothing (2), or J
   * alone in one of them (4), or what is left of them is not C's (A=I C=K, B=K C=I, each with the
   * other whole or cutting J: 4). 27^2 - 17^2 = 440 */
  ck_assert_uint_eq (n_refused, 440);
}
END_TEST

/* The cases by name, and what the strategies make of them. */
START_TEST (test_case_numbers)
{
  static const struct
  {
    const char *text;
    unsigned number;
    const char *by_cases;
  } cases[] = {
    { "A[I_X,J] * B[J,K] -> C[I_X,K]", 1, "I_X" },
    { "A[I,J_X] * B[J,K] -> C[I,K]", 2, "replicated" },
    { "A[I,J_X] * B[J,K_X] -> C[I,K_X]", 2, "K_X" },
    { "A[I,J_X] * B[J_X,K] -> C[I,K]", 3, "J_X" },
    { "A[I,J_X] * B[J_X,K] -> C[I_X,K]", 3, "J_X" },
    { "A[I_X,J] * B[J,K_X] -> C[I_X,K]", 4, "I_X" },
    { "A[I_X,J] * B[J,K_X] -> C[I,K_X]", 4, "K_X" },
    { "A[I,J] * B[J,K] -> C[I,K]", 1, "replicated" },
    { "A[I,J] * B[J,K] -> C[I_X,K]", 1, NULL /* a slice */ },
  };
  PodArrayMesh mesh = mesh_of ("X=2");

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      PodEinsum einsum;
      g_autoptr (PodMatmulStrategies) all = NULL;
      g_autofree char *why = NULL;
      g_autofree char *name = NULL;

      ck_assert (pod_einsum_parse (cases[i].text, &mesh, &einsum, NULL)
                 && pod_einsum_set_shape (&einsum, &mesh, "I=4,J=4,K=4", NULL));
      all = pod_matmul_strategies_new (&einsum, &mesh, NULL, NULL);
      ck_assert_ptr_nonnull (all);
      ck_assert_uint_eq (pod_matmul_case (all, 0, &why), cases[i].number);
      ck_assert_int_eq (all->by_cases >= 0, cases[i].by_cases != NULL);
      if (all->by_cases < 0)
        continue;
      name = pod_matmul_strategy_name (
          all, &g_array_index (all->strategies, PodMatmulStrategy, all->by_cases));
      ck_assert_str_eq (name, cases[i].by_cases);
    }
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("sharding");
  TCase *tcase = tcase_create ("all");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 0);
  tcase_add_test (tcase, test_all_pairs);
  tcase_add_test (tcase, test_unreduced_and_batch);
  tcase_add_test (tcase, test_orders);
  tcase_add_test (tcase, test_four_cases);
  tcase_add_test (tcase, test_case_numbers);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
