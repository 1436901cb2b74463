#include "chip/kernel-private.h"

#include <math.h>

/* A GPU matmul is cut into output tiles, and each tile, or each of the splits of its k, runs on one
 * core. */
typedef struct
{
  unsigned m, n;
} Tile;

/* Tile shapes of cuBLAS and CUTLASS (CUTLASS documentation, "efficient GEMM"; nvJet and XMMA
 * kernels have the same), and the narrow ones that serve few rows. Which one runs is a library's
 * heuristic; we take the cheapest. */
static const Tile tiles[] = {
  { 256, 128 }, { 128, 256 }, { 256, 64 }, { 64, 256 }, { 128, 128 }, { 128, 64 }, { 64, 128 },
  { 64, 64 },   { 64, 32 },   { 32, 64 },  { 64, 16 },  { 16, 64 },   { 32, 32 },
};

enum
{
  MAX_SPLITS = 64,
  K_STEP = 64, /* k advances by this many elements (128 bytes of bf16) */
};

typedef struct
{
  double flop_s, memory_s, overhead_s;
  double padding_ratio, wave_ratio;
  double waves;
  unsigned n_splits;
  const Tile *tile;
} Plan;

static double
plan_time_s (const Plan *plan)
{
  return MAX (plan->flop_s, plan->memory_s) + plan->overhead_s;
}

static double
reached_hbm_bytes_per_s (const PodKernelDevice *device)
{
  const PodChip *chip = device->chip;
  bool has_own = chip->matmul_hbm_efficiency > 0.0;

  return device->hbm_bytes_per_s
         * pod_kernel_efficiency (has_own ? chip->matmul_hbm_efficiency : chip->hbm_efficiency);
}

/* Rounds of @blocks over all cores. The last one, partly filled, counts half of what is missing:
 * its blocks find memory and clock less contended, and persistent kernels start them early. Over
 * the bf16 tables, 0.2 ... 0.5 predict held-out shapes of H100 and GB200 better than 1 does, by 0.3
 * ... 0.7 % of mean error; A100 gets worse below 0.5. */
static double
count_waves (double blocks, double n_cores)
{
  const double quantised = 0.5;
  double waves = blocks / n_cores;

  return waves <= 1.0 ? 1.0 : quantised * ceil (waves) + (1.0 - quantised) * waves;
}

/* Tensor cores are fed 16 bytes at a time: rows that do not begin on a multiple take kernels that load them in pieces. What that
 * costs is known of batched matmuls (attention op by op in BLOOM's sweep); single ones are taken as aligned. */
static bool
is_aligned (const PodKernel *kernel)
{
  const double unit = 16.0, bytes = pod_dtype_bytes (kernel->dtype);

  return kernel->batch <= 1
         || (fmod ((double) kernel->n * bytes, unit) == 0.0
             && fmod ((double) (kernel->is_transposed ? kernel->m : kernel->k) * bytes, unit) == 0.0);
}

/* Of the peak, in the steady state. */
static double
reached_efficiency (const PodChip *chip, const PodKernel *kernel)
{
  return pod_kernel_efficiency (chip->matmul_efficiency)
         * (is_aligned (kernel) ? 1.0 : pod_kernel_efficiency (chip->unaligned_matmul));
}

/* One tile shape and number of splits:
 *
 *   depth  = k / splits, in whole steps
 *   block  = max (2 x tile m x tile n x depth / (core peak x efficiency),
 *                 (tile m + tile n) x depth x bytes / core rate) + tile_s
 *   flop   = waves x block
 *   memory = (operands + fp32 partial sums of the splits) / reached HBM rate
 *
 * The core rate is the latency limit of one core alone, five times its share of HBM. The partial
 * sums are written and read, but stay in L2, so that they count once. */
static void
make_plan (const PodKernelDevice *device, const PodKernel *kernel, const Tile *tile,
           unsigned n_splits, Plan *out)
{
  const PodChip *chip = device->chip;
  double count = (double) kernel->batch;
  double m = (double) kernel->m, n = (double) kernel->n, k = (double) kernel->k;
  double depth = pod_kernel_round_up (k / n_splits, K_STEP);
  double n_tiles = ceil (m / tile->m) * ceil (n / tile->n) * count;
  double blocks = n_tiles * n_splits;
  double waves = count_waves (blocks, device->n_cores);
  double core_flops_per_s = device->peak_flops_per_s / device->n_cores
                            * reached_efficiency (chip, kernel);
  double scale = kernel->flops / (2.0 * count * m * n * k); /* 1 but for FLOPs counted otherwise */
  double multiply_s = 2.0 * scale * tile->m * tile->n * depth / core_flops_per_s;
  double load_bytes
      = (MIN (m, tile->m) + MIN (n, tile->n)) * depth * pod_dtype_bytes (kernel->dtype);
  double load_s = chip->core_bytes_per_s > 0.0 ? load_bytes / chip->core_bytes_per_s : 0.0;
  double n_bytes = kernel->read_bytes + kernel->write_bytes;

  if (n_splits > 1)
    n_bytes += 4.0 * n_splits * m * n * count;
  out->flop_s = waves * (MAX (multiply_s, load_s) + chip->tile_s);
  out->memory_s = n_bytes / reached_hbm_bytes_per_s (device);
  out->overhead_s = chip->launch_s + (n_splits > 1 ? chip->split_k_s : 0.0);
  out->overhead_s += pod_kernel_overlap_loss_s (device, kernel, out->flop_s, out->memory_s);
  out->padding_ratio = n_tiles * tile->m * tile->n * depth * n_splits / (count * m * n * k);
  out->wave_ratio = waves * device->n_cores / blocks;
  out->waves = waves;
  out->n_splits = n_splits;
  out->tile = tile;
}

static void
time_tiled (const PodKernelDevice *device, const PodKernel *kernel, PodKernelTime *out)
{
  Plan best = { .flop_s = INFINITY, .tile = &tiles[0] };

  for (unsigned i = 0; i < G_N_ELEMENTS (tiles); i++)
    {
      double n_tiles = ceil ((double) kernel->m / tiles[i].m)
                       * ceil ((double) kernel->n / tiles[i].n) * (double) kernel->batch;

      /* Splits pay while cores idle; four blocks to a core are the last worth a look. */
      for (unsigned n_splits = 1; n_splits <= MAX_SPLITS; n_splits *= 2)
        {
          Plan plan;

          if (n_splits > 1
              && (n_tiles * n_splits > 4.0 * device->n_cores
                  || kernel->k < 2ull * K_STEP * n_splits))
            break;
          make_plan (device, kernel, &tiles[i], n_splits, &plan);
          if (plan_time_s (&plan) < plan_time_s (&best))
            best = plan;
        }
    }
  out->flop_s = best.flop_s;
  out->memory_s = best.memory_s;
  out->overhead_s = best.overhead_s;
  out->padding_ratio = best.padding_ratio;
  out->wave_ratio = best.wave_ratio;
  out->waves = best.waves;
  out->n_splits = best.n_splits;
  out->tile_m = best.tile->m;
  out->tile_n = best.tile->n;
}

/* Sublanes x array edge x array edge: activations stream through in groups of 8 rows, the
 * stationary operand fills the array. Either operand may be the stationary one. */
static double
systolic_padding_ratio (const PodKernelDevice *device, const PodKernel *kernel)
{
  const double sublanes = 8.0;
  double edge = MAX (1.0, (double) device->chip->mxu_dim);
  double m = (double) kernel->m, n = (double) kernel->n, k = (double) kernel->k;
  double straight = pod_kernel_round_up (m, sublanes) * pod_kernel_round_up (n, edge);
  double swapped = pod_kernel_round_up (n, sublanes) * pod_kernel_round_up (m, edge);

  return MIN (straight, swapped) / (m * n) * pod_kernel_round_up (k, edge) / k;
}

void
pod_kernel_time_matmul (const PodKernelDevice *device, const PodKernel *kernel, PodKernelTime *out)
{
  const PodChip *chip = device->chip;
  bool has_shape = kernel->batch > 0 && kernel->m > 0 && kernel->n > 0 && kernel->k > 0;

  out->efficiency = pod_kernel_efficiency (chip->matmul_efficiency);
  if (has_shape && !device->has_systolic_array)
    {
      out->efficiency = reached_efficiency (chip, kernel);
      time_tiled (device, kernel, out);
      return;
    }
  if (has_shape)
    out->padding_ratio = systolic_padding_ratio (device, kernel);
  out->flop_s *= out->padding_ratio / out->efficiency;
  out->memory_s = (kernel->read_bytes + kernel->write_bytes) / reached_hbm_bytes_per_s (device);
  out->overhead_s
      = chip->launch_s + pod_kernel_overlap_loss_s (device, kernel, out->flop_s, out->memory_s);
}
