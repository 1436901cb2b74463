#include "chip/roofline.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

/* Book problems ("How to Scale Your Model") that these numbers answer, and by what input (fidelity
 * book; the checks are tests/tables/book-roofline.tsv): R001 R002 AT007      flop_s of a matmul of
 * that many FLOPs, at an overridden peak R004                 lower_bound_s, upper_bound_s at
 * overridden peak and HBM rate R005 R007 G072 G073  ridge_flops_per_byte of a matmul; R007 of a
 * vector op R010 R016 I003 I004  critical_batch_rule R019 T088            critical_batch: exact
 * bytes, weight dtype apart from the others R021 R022 R025       attained_flops_per_s R023
 * intensity of groups=B, b=1: another matrix per row F027 F028            intensity of attention, t
 * = s = 480 and t = 1; F027 critical_batch too T086 T089            place host, vmem T094 S003 time
 * of a copy G075                 time_s of a matmul G081                 time_s of a vector op,
 * fidelity calibrated F003 J012            kernel.flops The rest of kind roofline is facts about
 * the chip, which podsim roofline prints beside (R027 T057 T058 T063 T097 T098). */

static const char *const op_names[] = {
  [POD_ROOFLINE_MATMUL] = "matmul",
  [POD_ROOFLINE_ATTENTION] = "attention",
  [POD_ROOFLINE_VECTOR] = "vector",
  [POD_ROOFLINE_COPY] = "copy",
};

static const char *const place_names[] = {
  [POD_PLACE_HBM] = "hbm",
  [POD_PLACE_VMEM] = "vmem",
  [POD_PLACE_HOST] = "host",
};

const char *
pod_roofline_op_name (PodRooflineOp op)
{
  g_return_val_if_fail ((unsigned) op < G_N_ELEMENTS (op_names), NULL);
  return op_names[op];
}

bool
pod_roofline_op_parse (const char *text, PodRooflineOp *out, GError **error)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (op_names); i++)
    if (g_strcmp0 (text, op_names[i]) == 0)
      {
        *out = (PodRooflineOp) i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "unknown op '%s': it is one of matmul, attention, vector, copy", text);
  return false;
}

const char *
pod_place_name (PodPlace place)
{
  g_return_val_if_fail ((unsigned) place < G_N_ELEMENTS (place_names), NULL);
  return place_names[place];
}

bool
pod_place_parse (const char *text, PodPlace *out, GError **error)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (place_names); i++)
    if (g_strcmp0 (text, place_names[i]) == 0)
      {
        *out = (PodPlace) i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "unknown place '%s': operands live in one of hbm, vmem, host", text);
  return false;
}

/* -- checks ------------------------------------------------------------------------------------ */

typedef struct
{
  const char *name;
  uint64_t value;
} Extent;

static bool
check_extents (const Extent *extents, unsigned n, GError **error)
{
  for (unsigned i = 0; i < n; i++)
    if (extents[i].value == 0)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s must be 1 or more, got 0",
                     extents[i].name);
        return false;
      }
  return true;
}

static bool
check_attention (const PodRooflineInput *input, GError **error)
{
  uint64_t n = input->attention.n, k = input->attention.k;
  uint64_t t = input->attention.t, s = input->attention.s;
  const Extent extents[]
      = { { "B", input->attention.b }, { "T", t }, { "S", s }, { "N", n }, { "K", k },
          { "H", input->attention.h } };

  if (!check_extents (extents, G_N_ELEMENTS (extents), error))
    return false;
  if (n % k != 0)
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                 "%" G_GUINT64_FORMAT " query heads do not divide over %" G_GUINT64_FORMAT
                 " KV heads: %" G_GUINT64_FORMAT " are left over",
                 n, k, n % k);
  else if (input->attention.is_causal && t > s)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "causal attention needs at least as many keys as queries, got T=%" G_GUINT64_FORMAT
                 ", S=%" G_GUINT64_FORMAT,
                 t, s);
  else
    return true;
  return false;
}

static bool
check_input (const PodRooflineInput *input, GError **error)
{
  const Extent matmul[] = { { "G", input->matmul.groups },
                            { "B", input->matmul.b },
                            { "D", input->matmul.d },
                            { "F", input->matmul.f } };

  switch (input->op)
    {
    case POD_ROOFLINE_MATMUL:
      return check_extents (matmul, G_N_ELEMENTS (matmul), error);
    case POD_ROOFLINE_ATTENTION:
      return check_attention (input, error);
    case POD_ROOFLINE_VECTOR:
      if (input->vector.elements > 0.0
          && input->vector.flops + input->vector.read_bytes + input->vector.write_bytes > 0.0)
        return true;
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "a vector op needs elements, and FLOPs or bytes of each");
      return false;
    case POD_ROOFLINE_COPY:
    default:
      if (input->copy.read_bytes + input->copy.write_bytes > 0.0)
        return true;
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "a copy needs bytes");
      return false;
    }
}

/* -- the kernel and the machine it meets ------------------------------------------------------- */

/* Mean keys per query: all, or with a causal mask s - (t-1)/2, as query i of t sees s - t + 1 + i.
 */
static double
attention_span (const PodRooflineInput *input)
{
  double t = (double) input->attention.t, s = (double) input->attention.s;

  return input->attention.is_causal ? s - (t - 1.0) / 2.0 : s;
}

static PodKernel
attention_kernel (const PodRooflineInput *input)
{
  double ratio = pod_dtype_bytes (input->dtype) / pod_dtype_bytes (input->compute_dtype);
  PodKernel kernel = pod_kernel_attention (
      false, input->attention.b, input->attention.t, input->attention.s, attention_span (input),
      input->attention.n, input->attention.k, input->attention.h, input->attention.h,
      input->attention.is_causal, input->compute_dtype);

  kernel.read_bytes *= ratio;
  kernel.write_bytes *= ratio;
  return kernel;
}

static PodKernel
make_kernel (const PodRooflineInput *input)
{
  double elements = input->vector.elements;

  switch (input->op)
    {
    case POD_ROOFLINE_MATMUL:
      return pod_kernel_matmul (
          input->matmul.groups, input->matmul.b, input->matmul.f, input->matmul.d,
          input->compute_dtype, pod_dtype_bytes (input->dtype),
          pod_dtype_bytes (input->weight_dtype), pod_dtype_bytes (input->out_dtype));
    case POD_ROOFLINE_ATTENTION:
      return attention_kernel (input);
    case POD_ROOFLINE_VECTOR:
      return pod_kernel_vector (elements * input->vector.flops, elements * input->vector.read_bytes,
                                elements * input->vector.write_bytes);
    case POD_ROOFLINE_COPY:
    default:
      return pod_kernel_vector (0.0, input->copy.read_bytes, input->copy.write_bytes);
    }
}

/* The chip with the memory of @place where HBM is, borrowing everything else; false when its rate
 * is unknown. */
static bool
chip_at_place (const PodChip *chip, PodPlace place, PodChip *out, GError **error)
{
  *out = *chip;
  if (place != POD_PLACE_HBM) /* surfaces are measured from HBM */
    memset (out->surfaces, 0, sizeof out->surfaces);
  if (place == POD_PLACE_VMEM)
    {
      /* the rate is width x clock: nothing is lost on the way */
      out->hbm_bytes_per_s = chip->vmem_bytes_per_s;
      out->hbm_efficiency = out->matmul_hbm_efficiency = 1.0;
    }
  else if (place == POD_PLACE_HOST)
    {
      /* copies between host and TPU v6e reach 0.89 of PCIe, near what HBM reaches of its own rate
       */
      out->hbm_bytes_per_s = chip->host_bytes_per_s;
      out->matmul_hbm_efficiency = chip->hbm_efficiency;
    }
  if (out->hbm_bytes_per_s.nominal > 0.0 && out->hbm_bytes_per_s.book > 0.0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "chip '%s' gives no bandwidth of %s: set chip.%s", chip->name,
               pod_place_name (place),
               place == POD_PLACE_VMEM ? "vmem_bandwidth" : "host_bandwidth");
  return false;
}

/* -- critical batches -------------------------------------------------------------------------- */

/* X[B,D] . Y[D,F] with a, w, o bytes per element, G of them. Compute-bound when
 *   2 G B D F / C >= G (a B D + w D F + o B F) / W,  so  B >= w D F / (2 D F / R - (a D + o F)),  R
 * = C/W. Rule of thumb for B << D, F: only the weights count, B >= R w/2. */
static void
matmul_critical_batch (const PodRooflineInput *input, double ridge, PodRoofline *out)
{
  double d = (double) input->matmul.d, f = (double) input->matmul.f;
  double weight = pod_dtype_bytes (input->weight_dtype);
  double gain = 2.0 * d * f / ridge
                - (d * pod_dtype_bytes (input->dtype) + f * pod_dtype_bytes (input->out_dtype));

  out->critical_batch = gain > 0.0 ? weight * d * f / gain : INFINITY;
  out->critical_batch_rule = ridge * weight / 2.0;
}

/* Queries T per sequence at which attention is compute-bound; with e bytes per element, R = C/W and
 * G = N/K: S grows with T (given equal): 4 T^2 N H / C = 2 e T H (N + K) / W, so  T = R e (G + 1) /
 * 2G; causal halves the FLOPs, 2 T (T + 1) N H, so  T = R e (G + 1) / G - 1 S stays (decode,
 * chunks): 4 T S N H / C = 2 e H (T N + S K) / W, so  T = R e S / (G (2 S - R e)); causal has 4 T
 * (S - (T-1)/2) N H, so  T^2 - (2 S + 1 - R e) T + R e S / G = 0 Rule of thumb: the first without
 * mask; and for T << S, where K and V are all the bytes, T = R e / 2G. */
static void
attention_critical_batch (const PodRooflineInput *input, double ridge, PodRoofline *out)
{
  double s = (double) input->attention.s;
  double group = (double) input->attention.n / (double) input->attention.k;
  double balance = ridge * pod_dtype_bytes (input->dtype);
  double b = 2.0 * s + 1.0 - balance, root;

  if (input->attention.t == input->attention.s)
    {
      out->critical_batch_rule = balance * (group + 1.0) / (2.0 * group);
      out->critical_batch = out->critical_batch_rule;
      if (input->attention.is_causal)
        out->critical_batch = MAX (0.0, 2.0 * out->critical_batch_rule - 1.0);
      return;
    }
  out->critical_batch_rule = balance / (2.0 * group);
  out->critical_batch = INFINITY;
  if (!input->attention.is_causal)
    {
      if (2.0 * s > balance)
        out->critical_batch = balance * s / (group * (2.0 * s - balance));
      return;
    }
  root = b * b - 4.0 * balance * s / group;
  if (b > 0.0 && root >= 0.0 && (b - sqrt (root)) / 2.0 <= s)
    out->critical_batch = (b - sqrt (root)) / 2.0;
}

/* -- all of it --------------------------------------------------------------------------------- */

/* Lossless rates of the device: C and W. */
static void
set_bounds (const PodChip *chip, bool is_book, const PodRooflineInput *input, PodRoofline *out)
{
  double n_devices = MAX (1.0, (double) chip->devices_per_chip);
  double bytes = out->kernel.read_bytes + out->kernel.write_bytes;
  double peak = pod_chip_peak (chip, input->compute_dtype, is_book, &out->used_dtype);
  double flop_s, memory_s;

  if (input->op == POD_ROOFLINE_VECTOR)
    peak = (is_book ? chip->vector_flops_per_s.book : chip->vector_flops_per_s.nominal) / n_devices;
  out->memory_bytes_per_s = pod_chip_hbm_rate (chip, is_book);
  flop_s = out->kernel.flops > 0.0 && peak > 0.0 ? out->kernel.flops / peak : 0.0;
  memory_s = bytes / out->memory_bytes_per_s;
  out->intensity_flops_per_byte = bytes > 0.0 ? out->kernel.flops / bytes : INFINITY;
  out->ridge_flops_per_byte = peak / out->memory_bytes_per_s;
  out->lower_bound_s = MAX (flop_s, memory_s);
  out->upper_bound_s = flop_s + memory_s;
  out->critical_batch = out->critical_batch_rule = NAN;
  if (input->op == POD_ROOFLINE_MATMUL)
    matmul_critical_batch (input, out->ridge_flops_per_byte, out);
  else if (input->op == POD_ROOFLINE_ATTENTION)
    attention_critical_batch (input, out->ridge_flops_per_byte, out);
  /* the lossless time of a vector op, which the book's kernels leave out */
  if (is_book && (input->op == POD_ROOFLINE_VECTOR || input->op == POD_ROOFLINE_COPY))
    {
      out->time.flop_s = flop_s;
      out->time.memory_s = memory_s;
      out->time.time_s = out->lower_bound_s;
      out->time.bound = flop_s >= memory_s ? POD_BOUND_COMPUTE : POD_BOUND_HBM;
    }
}

bool
pod_roofline_compute (const PodChip *chip, PodFidelity fidelity, const PodRooflineInput *input,
                      PodRoofline *out, GError **error)
{
  PodChip local;

  if (!check_input (input, error) || !chip_at_place (chip, input->place, &local, error))
    return false;
  *out = (PodRoofline){ .kernel = make_kernel (input) };
  pod_kernel_time (&local, fidelity, &out->kernel, &out->time);
  set_bounds (&local, fidelity == POD_FIDELITY_BOOK, input, out);
  if (fidelity == POD_FIDELITY_CALIBRATED)
    out->upper_bound_s = out->time.flop_s + out->time.memory_s + out->time.overhead_s;
  if (!isfinite (out->kernel.flops) || !isfinite (out->time.time_s) || !isfinite (out->upper_bound_s))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "the operation is too large: %g FLOPs, %g s",
                   out->kernel.flops, out->time.time_s);
      return false;
    }
  out->attained_flops_per_s = out->kernel.flops / out->time.time_s;
  return true;
}
