#include "chip/kernel-private.h"

#include <math.h>

/* Flash attention on a GPU gives blocks of queries of one head to the cores, each of which walks
 * over its keys. One (query, key) pair costs its multiplications and its share of the softmax, and
 * the latter does not shrink with head_dim:
 *
 *   time of a pair ~ head_dim + softmax_dims
 *   efficiency (d) = attention_efficiency x (1 + softmax_dims / 128) / (1 + softmax_dims / d)
 *
 * FlashAttention-3 on H100 (Dao-AILab, 2024; 497, 648, 756 TFLOP/s at head_dim 64, 128, 256 and
 * 16,384 keys) follows softmax_dims = 55 within 1 %; TensorRT-LLM's kernels give less. */

/* Which kernel serves, and what part of the chip's constants it pays. */
typedef struct
{
  double launch_ratio;
  double block_ratio;
  double load_ratio;
  double traffic_ratio; /* bytes moved over bytes of the operands */
} Flavour;

enum
{
  FLAVOUR_PREFILL,
  FLAVOUR_BACKWARD,
  FLAVOUR_DECODE_GROUPED,
  FLAVOUR_DECODE_PER_HEAD,
};

/* Fitted to the bf16 tables of TensorRT-LLM 1.x on A100, H100, B200
 * (ai-dynamo/aiconfigurator@095f58a). Prefill: the op also splits, rotates and stores Q, K, V,
 * about four passes over them. Decode: one kernel for all query heads of a group up to 32, else one
 * block per query head, which is short to start but loads slower. */
static const Flavour flavours[] = {
  [FLAVOUR_PREFILL] = { 1.0, 1.0, 1.0, 4.0 },
  [FLAVOUR_BACKWARD] = { 1.0, 1.0, 1.0, 1.0 },
  [FLAVOUR_DECODE_GROUPED] = { 0.375, 1.0, 1.0, 1.0 },
  [FLAVOUR_DECODE_PER_HEAD] = { 0.6, 0.26, 0.6, 1.0 },
};

/* The kernel's numbers as doubles, per (query, key) pair where it helps. */
typedef struct
{
  const PodKernelDevice *device;
  const PodKernel *kernel;
  const Flavour *flavour;
  bool is_decode;
  double n_heads; /* that get blocks of their own: query heads, or KV heads when a block serves a
                     group */
  double rows;    /* queries of one such head */
  double keys;
  double span; /* mean keys per query */
  double pair_flops;
  double key_bytes;   /* of K and V of one key */
  double flops_per_s; /* of one core, reached */
} Attention;

typedef struct
{
  double flop_s, overhead_s;
  double padding_ratio, wave_ratio, waves;
} Plan;

/* The backward pass reaches 0.87 of the forward rate: FlashAttention-2 on H100 at 16,384 keys and
 * head_dim 128, forward 370 TFLOP/s, both 335, so backward 323: 3.5/335 = 1/370 + 2.5/323. */
static double
reached_efficiency (const PodChip *chip, const PodKernel *kernel)
{
  double dim = ((double) kernel->k + (double) kernel->v_dim) / 2.0;
  double softmax = chip->attention_softmax_dims;
  double efficiency = pod_kernel_efficiency (chip->attention_efficiency);

  if (kernel->kind == POD_KERNEL_ATTENTION_BACKWARD)
    efficiency *= 0.87;
  return MIN (1.0, efficiency * (1.0 + softmax / 128.0) / (1.0 + softmax / dim));
}

bool
pod_kernel_is_decode (const PodKernel *kernel)
{
  return kernel->kind == POD_KERNEL_ATTENTION && kernel->m <= 8 && kernel->n > kernel->m;
}

static void
attention_init (Attention *attention, const PodKernelDevice *device, const PodKernel *kernel,
                double efficiency)
{
  double dims = (double) kernel->k + (double) kernel->v_dim;
  double queries = (double) kernel->batch * (double) kernel->heads * (double) kernel->m;
  double pair_flops = kernel->kind == POD_KERNEL_ATTENTION_BACKWARD
                          ? 2.0 * (3.0 * (double) kernel->k + 2.0 * (double) kernel->v_dim)
                          : 2.0 * dims;
  double group = (double) kernel->heads / (double) kernel->kv_heads;
  bool is_decode = pod_kernel_is_decode (kernel);
  /* kernels for latent attention (576 + 512 dims) serve any group */
  bool is_grouped = is_decode && group > 1.0 && (group <= 32.0 || dims > 512.0);
  int flavour = FLAVOUR_PREFILL;

  if (kernel->kind == POD_KERNEL_ATTENTION_BACKWARD)
    flavour = FLAVOUR_BACKWARD;
  else if (is_decode)
    flavour = is_grouped ? FLAVOUR_DECODE_GROUPED : FLAVOUR_DECODE_PER_HEAD;
  *attention = (Attention){
    .device = device,
    .kernel = kernel,
    .flavour = &flavours[flavour],
    .is_decode = is_decode,
    .n_heads = (double) kernel->batch * (double) (is_grouped ? kernel->kv_heads : kernel->heads),
    .rows = (double) kernel->m * (is_grouped ? group : 1.0),
    .keys = (double) kernel->n,
    .span = kernel->flops / (queries * pair_flops),
    .pair_flops = pair_flops,
    .key_bytes = dims * pod_dtype_bytes (kernel->dtype),
    .flops_per_s = device->peak_flops_per_s / device->n_cores * efficiency,
  };
}

/* Seconds of one block of @rows queries over @keys keys. */
static double
block_s (const Attention *attention, double rows, double keys)
{
  const PodChip *chip = attention->device->chip;
  double multiply_s = rows * keys * attention->pair_flops / attention->flops_per_s;
  double load_s = 0.0;

  if (chip->core_bytes_per_s > 0.0)
    load_s
        = keys * attention->key_bytes / (chip->core_bytes_per_s * attention->flavour->load_ratio);
  return MAX (multiply_s, load_s) + chip->attention_block_s * attention->flavour->block_ratio;
}

/* Blocks of @block_rows queries whose keys are split in @n_splits (decode).
 *   flop = max(sum of all blocks / cores, the longest block); equal blocks run in whole waves.
 * Under a causal mask blocks differ: the mean one sees the mean span and half of the block on the
 * diagonal, the last one all keys; long ones start first, so that their sum spreads over the cores.
 */
static void
make_plan (const Attention *attention, double block_rows, unsigned n_splits, Plan *out)
{
  const double key_step = 64.0;
  const PodChip *chip = attention->device->chip;
  double n_cores = attention->device->n_cores;
  double blocks = ceil (attention->rows / block_rows) * attention->n_heads * n_splits;
  bool is_uneven
      = attention->kernel->is_causal && attention->rows > block_rows && !attention->is_decode;
  double all_keys = pod_kernel_round_up (attention->keys, key_step);
  double keys = all_keys;
  double most_keys = MIN (all_keys, 2.0 * attention->span + block_rows);
  double each_s, spread_s;

  if (is_uneven)
    keys = MIN (all_keys, attention->span + block_rows / 2.0);
  else if (attention->kernel->is_causal) /* less than all in a window */
    keys = MIN (all_keys, attention->span + key_step + attention->rows);
  keys = MAX (attention->span, keys);
  /* a per-head decode block multiplies vectors, all others fill a tile of the matrix units */
  if (attention->flavour == &flavours[FLAVOUR_DECODE_PER_HEAD])
    block_rows = attention->rows;
  each_s = block_s (attention, block_rows, keys / n_splits);
  spread_s = each_s * blocks / n_cores;
  out->flop_s = is_uneven ? MAX (spread_s, block_s (attention, block_rows, most_keys))
                          : each_s * ceil (blocks / n_cores);
  out->overhead_s = (chip->attention_launch_s > 0.0 ? chip->attention_launch_s : chip->launch_s)
                    * attention->flavour->launch_ratio;
  if (n_splits > 1)
    out->overhead_s += chip->split_k_s;
  out->wave_ratio = out->flop_s / spread_s;
  out->waves = out->flop_s / each_s;
  out->padding_ratio = blocks / n_splits * block_rows * keys
                       / (attention->n_heads * attention->rows * attention->span);
}

static void
time_blocks (const Attention *attention, PodKernelTime *out)
{
  enum
  {
    MAX_SPLITS = 32,
    LEAST_KEYS = 64,
  };
  const unsigned sizes[] = { 128, 64 };
  const PodKernel *kernel = attention->kernel;
  double best_s = INFINITY;

  for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (unsigned n_splits = 1; n_splits <= MAX_SPLITS; n_splits *= 2)
      {
        Plan plan;
        double loss_s;

        if (n_splits > 1 && (!attention->is_decode || attention->keys < LEAST_KEYS * n_splits))
          break;
        make_plan (attention, sizes[i], n_splits, &plan);
        loss_s = pod_kernel_overlap_loss_s (attention->device, kernel, plan.flop_s, out->memory_s);
        if (MAX (plan.flop_s, out->memory_s) + loss_s + plan.overhead_s >= best_s)
          continue;
        best_s = MAX (plan.flop_s, out->memory_s) + loss_s + plan.overhead_s;
        out->flop_s = plan.flop_s;
        out->overhead_s = plan.overhead_s + loss_s;
        out->padding_ratio = plan.padding_ratio;
        out->wave_ratio = plan.wave_ratio;
        out->waves = plan.waves;
        out->tile_m = sizes[i];
        out->n_splits = n_splits;
      }
}

/* A systolic array: query rows of a KV head in groups of 8 sublanes, keys and head_dim in lanes of
 * 128; a causal mask is cut in blocks of 512 queries, of which the diagonal one is computed whole
 * (splash attention's default block, MaxText 2025). */
static double
systolic_padding_ratio (const PodKernel *kernel, double span)
{
  const double sublanes = 8.0, lanes = 128.0, block_rows = 512.0;
  double rows = (double) kernel->m * MAX (1.0, (double) kernel->heads / (double) kernel->kv_heads);
  double dims = (double) kernel->k + (double) kernel->v_dim;
  double padded_dims = pod_kernel_round_up ((double) kernel->k, lanes)
                       + pod_kernel_round_up ((double) kernel->v_dim, lanes);
  double all_keys = pod_kernel_round_up ((double) kernel->n, lanes);
  double keys = MAX (span, kernel->is_causal ? MIN (all_keys, span + block_rows / 2.0) : all_keys);

  return pod_kernel_round_up (rows, sublanes) / rows * padded_dims / dims * keys / span;
}

void
pod_kernel_time_attention (const PodKernelDevice *device, const PodKernel *kernel,
                           PodKernelTime *out)
{
  const PodChip *chip = device->chip;
  bool has_shape = kernel->batch > 0 && kernel->m > 0 && kernel->n > 0 && kernel->k > 0
                   && kernel->v_dim > 0 && kernel->heads > 0 && kernel->kv_heads > 0
                   && kernel->flops > 0.0;
  Attention attention;

  out->efficiency = has_shape ? reached_efficiency (chip, kernel)
                              : pod_kernel_efficiency (chip->attention_efficiency);
  out->memory_s /= pod_kernel_efficiency (chip->hbm_efficiency);
  if (has_shape)
    attention_init (&attention, device, kernel, out->efficiency);
  if (has_shape && !device->has_systolic_array)
    {
      out->memory_s *= attention.flavour->traffic_ratio;
      time_blocks (&attention, out);
      return;
    }
  if (has_shape)
    out->padding_ratio = systolic_padding_ratio (kernel, attention.span);
  out->flop_s *= out->padding_ratio / out->efficiency;
  out->overhead_s = (chip->attention_launch_s > 0.0 ? chip->attention_launch_s : chip->launch_s)
                    + pod_kernel_overlap_loss_s (device, kernel, out->flop_s, out->memory_s);
}
