#include "validate/kernel-terms.h"

#include <math.h>
#include <string.h>

/* What one part of an operation is. */
typedef enum
{
  PART_KERNEL,
  PART_CAST,   /* quantisation before the kernel */
  PART_LAUNCH, /* of kernels too small to count otherwise */
} PartKind;

typedef struct
{
  PartKind kind;
  PodKernel kernel;
  double n_launches; /* of PART_LAUNCH */
} Part;

/* -- matmuls ----------------------------------------------------------------------------------- */

/* fp8 results leave in bf16. */
static unsigned
gemm_parts (const PodKernelSample *sample, Part *parts)
{
  uint64_t m = sample->numbers[POD_GEMM_M], n = sample->numbers[POD_GEMM_N];
  uint64_t k = sample->numbers[POD_GEMM_K];
  double bytes = pod_dtype_bytes (sample->dtype);

  parts[0] = (Part){ .kind = PART_KERNEL,
                     .kernel = pod_kernel_matmul (1, m, n, k, sample->dtype, bytes, bytes, 2.0) };
  if (sample->dtype != POD_DTYPE_FP8)
    return 1;
  parts[1] = (Part){ .kind = PART_CAST, .kernel = parts[0].kernel };
  return 2;
}

/* -- attention --------------------------------------------------------------------------------- */

static unsigned
attention_parts (const PodKernelSample *sample, Part *parts)
{
  uint64_t queries = sample->numbers[POD_ATTENTION_Q_LEN];
  uint64_t keys = queries + sample->numbers[POD_ATTENTION_PAST_LEN];
  uint64_t dim = sample->numbers[POD_ATTENTION_HEAD_DIM];
  double span = (double) keys - ((double) queries - 1.0) / 2.0;

  parts[0] = (Part){
    .kind = PART_KERNEL,
    .kernel
    = pod_kernel_attention (false, sample->numbers[POD_ATTENTION_BATCH], queries, keys, span,
                            sample->numbers[POD_ATTENTION_HEADS],
                            sample->numbers[POD_ATTENTION_KV_HEADS], dim, dim, true, sample->dtype),
  };
  return 1;
}

/* -- experts ----------------------------------------------------------------------------------- */

/* One model of the measured ones has no gate: Nemotron 3 squares a ReLU (22 of 512 experts over a
 * latent width of 2048); its time is below that of reading three matrices. */
static bool
is_gated (const PodKernelSample *sample)
{
  return sample->numbers[POD_MOE_TOP_K] <= 16;
}

/* Equal shares: @out_experts of the rank work, on @out_rows copies of tokens each. */
static void
share_tokens (const PodKernelSample *sample, uint64_t *out_experts, uint64_t *out_rows)
{
  uint64_t copies = sample->numbers[POD_MOE_TOKENS] * sample->numbers[POD_MOE_TOP_K];
  uint64_t ranks = sample->numbers[POD_MOE_EP];
  uint64_t local = sample->numbers[POD_MOE_EXPERTS] / ranks;
  uint64_t mine = MAX (1, (copies + ranks / 2) / ranks);

  *out_experts = MIN (local, mine);
  *out_rows = (mine + *out_experts - 1) / *out_experts;
}

/* Around the matmuls of experts run small kernels (TensorRT-LLM 1.x, CUTLASS mixture of experts),
 * counted in launches: the sort of the tokens by expert, the sums of the counts, the ends of both
 * matmuls. Those that copy and add up rows have a block for each, which walks along it: one launch
 * more for 1,024 values. Many tokens, or more than 8 experts for each, take more: probably several
 * kernels that sort instead of one; the table names none, and one model of it has more than 8.
 * The counts are fitted to the balanced rows of the H100 table: with next to no work, hidden 2048
 * takes 20 us, 4096 26, 6144 30; 22 experts of 512 a token take 28 us more than 8 of 256; from 384
 * to 512 tokens all rise by 5 us. */
static double
routing_launches (const PodKernelSample *sample)
{
  const double n_fixed = 3.0, n_per_1024_values = 1.0, n_of_wide_sort = 11.0, n_of_long_sort = 2.0;
  const uint64_t most_choices = 8, most_tokens = 384;
  double n = n_fixed + n_per_1024_values * (double) sample->numbers[POD_MOE_HIDDEN] / 1024.0;

  if (sample->numbers[POD_MOE_TOP_K] > most_choices)
    n += n_of_wide_sort;
  if (sample->numbers[POD_MOE_TOKENS] > most_tokens)
    n += n_of_long_sort;
  return n;
}

/* Tokens go to their experts, into the experts' width and back, with the activation between, and
 * are added up: a rank writes the sums of all tokens, also of those that none of its experts saw.
 */
static unsigned
moe_parts (const PodKernelSample *sample, Part *parts)
{
  uint64_t hidden = sample->numbers[POD_MOE_HIDDEN];
  uint64_t width = sample->numbers[POD_MOE_FFN] / sample->numbers[POD_MOE_TP];
  uint64_t n_matrices = is_gated (sample) ? 2 : 1, experts, rows;
  double bytes = pod_dtype_bytes (sample->dtype), copies;
  double tokens = (double) sample->numbers[POD_MOE_TOKENS];

  share_tokens (sample, &experts, &rows);
  copies = (double) experts * (double) rows;
  parts[0] = (Part){
    .kind = PART_KERNEL,
    .kernel = pod_kernel_matmul (experts, rows, n_matrices * width, hidden, sample->dtype, bytes,
                                 bytes, 2.0),
  };
  parts[1] = (Part){
    .kind = PART_KERNEL,
    .kernel = pod_kernel_matmul (experts, rows, hidden, width, sample->dtype, bytes, bytes, 2.0),
  };
  parts[2] = (Part){
    .kind = PART_KERNEL,
    .kernel
    = pod_kernel_vector (copies * (5.0 * (double) width + (double) hidden),
                         2.0 * copies * ((double) (n_matrices * width) + 2.0 * (double) hidden),
                         2.0 * (copies * (double) (width + hidden) + tokens * (double) hidden)),
  };
  parts[3] = (Part){ .kind = PART_LAUNCH, .n_launches = routing_launches (sample) };
  return 4;
}

/* -- all --------------------------------------------------------------------------------------- */

static unsigned
split_sample (const PodKernelSample *sample, Part parts[POD_SAMPLE_MAX_TERMS])
{
  switch (sample->kind)
    {
    case POD_SAMPLE_GEMM:
      return gemm_parts (sample, parts);
    case POD_SAMPLE_PREFILL:
    case POD_SAMPLE_DECODE:
      return attention_parts (sample, parts);
    case POD_SAMPLE_MOE:
    case POD_SAMPLE_MOE_SKEWED:
    case POD_N_SAMPLE_KINDS:
    default:
      return moe_parts (sample, parts);
    }
}

static bool
is_of_experts (const PodKernelSample *sample)
{
  return sample->kind == POD_SAMPLE_MOE || sample->kind == POD_SAMPLE_MOE_SKEWED;
}

/* Where a rank's experts as a whole stand on the surface that tells what shares of the tokens and
 * the kernels around the matmuls make of them. */
static PodKernelPoint
experts_point (const PodKernelSample *sample)
{
  double experts = (double) sample->numbers[POD_MOE_EXPERTS];
  double ranks = (double) sample->numbers[POD_MOE_EP];

  return (PodKernelPoint){
    .kind = POD_SURFACE_EXPERTS,
    .at = { (double) sample->numbers[POD_MOE_TOKENS] * (double) sample->numbers[POD_MOE_TOP_K]
                / experts,
            experts / ranks, ranks, sample->power },
  };
}

static void
set_term (const PodChip *bare, const Part *part, PodKernelTerm *out)
{
  const PodKernel *kernel = &part->kernel;
  PodKernelTime time;

  *out = (PodKernelTerm){ 0 };
  if (part->kind == PART_LAUNCH)
    {
      out->base_s = part->n_launches * bare->launch_s;
      return;
    }
  if (part->kind == PART_CAST)
    {
      out->base_s = pod_kernel_cast_s (bare, kernel->m, kernel->k);
      out->points[out->n_points++]
          = (PodKernelPoint){ .kind = POD_SURFACE_CAST_FP8,
                              .at = { (double) kernel->m, (double) kernel->k } };
      return;
    }
  pod_kernel_time (bare, POD_FIDELITY_IDEAL, kernel, &time);
  out->ideal_s = time.time_s;
  pod_kernel_time (bare, POD_FIDELITY_CALIBRATED, kernel, &time);
  out->base_s = time.time_s;
  out->n_points = pod_kernel_points (kernel, out->points);
}

unsigned
pod_kernel_sample_terms (const PodChip *chip, const PodKernelSample *sample,
                         PodKernelTerm terms[POD_SAMPLE_MAX_TERMS])
{
  Part parts[POD_SAMPLE_MAX_TERMS];
  PodChip bare = *chip; /* borrows all but the surfaces */
  unsigned n = split_sample (sample, parts);

  memset (bare.surfaces, 0, sizeof bare.surfaces);
  for (unsigned i = 0; i < n; i++)
    {
      set_term (&bare, &parts[i], &terms[i]);
      if (is_of_experts (sample))
        terms[i].points[terms[i].n_points++] = experts_point (sample);
    }
  return n;
}

double
pod_kernel_sample_predict (const PodChip *chip, const PodKernelSample *sample, double *out_ideal_s)
{
  Part parts[POD_SAMPLE_MAX_TERMS];
  unsigned n = split_sample (sample, parts);
  double sum_s = 0.0, ideal_s = 0.0;

  for (unsigned i = 0; i < n; i++)
    {
      const PodKernel *kernel = &parts[i].kernel;
      PodKernelTime time;

      if (parts[i].kind != PART_KERNEL)
        {
          sum_s += parts[i].kind == PART_CAST ? pod_kernel_cast_s (chip, kernel->m, kernel->k)
                                              : parts[i].n_launches * chip->launch_s;
          continue;
        }
      pod_kernel_time (chip, POD_FIDELITY_CALIBRATED, kernel, &time);
      sum_s += time.time_s;
      pod_kernel_time (chip, POD_FIDELITY_IDEAL, kernel, &time);
      ideal_s += time.time_s;
    }
  if (is_of_experts (sample) && chip->surfaces[POD_SURFACE_EXPERTS] != NULL)
    {
      PodKernelPoint point = experts_point (sample);

      sum_s *= exp (pod_surface_at (chip->surfaces[POD_SURFACE_EXPERTS], point.at));
    }
  if (out_ideal_s != NULL)
    *out_ideal_s = ideal_s;
  return sum_s;
}
