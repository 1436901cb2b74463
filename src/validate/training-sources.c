#include "validate/training-sources.h"

#include <string.h>

/* The first entry that fits wins. NIC rates are shares of a node's: 4 x 100 Gb/s over 8 GPUs are 50 Gb/s each. Without a rate
 * the chip's own (its file names the source). */
static const PodTrainingMachine machines[] = {
  { .hardware = "Jean Zay", .chip = "a100", .domain = 8, .options = "nic=50Gb/s,nics=4" },
  { .hardware = "Selene", .chip = "a100", .domain = 8, .options = "nic=200Gb/s,tree=3" },
  { .hardware = "SuperPOD", .chip = "a100", .domain = 8, .options = "nic=200Gb/s,tree=3" },
  { .hardware = "A100-SXM-40GB", .chip = "a100-40", .domain = 8, .options = "nic=200Gb/s" },
  { .hardware = "A100-SXM", .topology = "4x100 Gb/s", .chip = "a100", .domain = 8,
    .options = "nic=50Gb/s,nics=4" },
  { .hardware = "A100-SXM", .topology = "800 Gb/s per node", .chip = "a100", .domain = 8,
    .options = "nic=100Gb/s,nics=4" },
  { .hardware = "A100-SXM", .chip = "a100", .domain = 8, .options = "nic=200Gb/s" },
  /* Six stacks of HBM2e at the 408 GB/s of the H100 PCIe's five (2.04 TB/s, its datasheet); the driver shows 95 GiB. What a
   * limit of 500 W does to the clock is not published. */
  { .hardware = "H100 96GB HBM2e 500W", .chip = "h100", .domain = 8, .options = "nic=400Gb/s",
    .set = { "chip.hbm_bandwidth=2.45TB/s", "chip.hbm_capacity=95GiB", "chip.tdp=500W" } },
  { .hardware = "H100 (torchtitan test fleet)", .chip = "h100", .domain = 8, .options = "nic=400Gb/s",
    .set = { "chip.hbm_bandwidth=2.45TB/s", "chip.hbm_capacity=95GiB", "chip.tdp=500W" } },
  { .hardware = "GCP A3)", .chip = "h100", .domain = 8, .options = "nic=100Gb/s,nics=4" },
  { .hardware = "GCP A3 Mega", .chip = "h100", .domain = 8, .options = "nic=200Gb/s" },
  { .hardware = "H100", .chip = "h100", .domain = 8, .options = "nic=400Gb/s,tree=3" },
  { .hardware = "A800/H800", .chip = NULL },
  { .hardware = "H800", .chip = "h800", .domain = 8 },
  { .hardware = "H200-NVL", .chip = NULL },
  { .hardware = "H200", .chip = "h200", .domain = 8 },
  { .hardware = "GB200", .chip = "gb200", .domain = 72 },
  { .hardware = "GB300", .chip = "gb300", .domain = 72 },
  { .hardware = "B200", .chip = "b200", .domain = 8 },
  { .hardware = "B300", .chip = "b300", .domain = 8 },
  { .hardware = "MI300X", .chip = "mi300x", .domain = 8 },
  { .hardware = "MI325X", .chip = "mi325x", .domain = 8 },
  { .hardware = "MI355X", .chip = "mi355x", .domain = 8 },
  { .hardware = "TPU v3", .chip = "tpu-v3" },
  { .hardware = "TPU v4", .chip = "tpu-v4" },
  { .hardware = "TPU v5e", .chip = "tpu-v5e" },
  { .hardware = "TPU-v5e", .chip = "tpu-v5e" },
  { .hardware = "TPU v5p", .chip = "tpu-v5p" },
  { .hardware = "TPU-v5p", .chip = "tpu-v5p" },
  { .hardware = "TPU v6e", .chip = "tpu-v6e" },
  { .hardware = "TPU-trillium", .chip = "tpu-v6e" },
  { .hardware = "TPU7x", .chip = "tpu-v7x" },
};

static const PodTrainingModel models[] = {
  { "GPT OSS 120B", "gpt-oss-120b", true },
  { "GPT OSS 20B", "gpt-oss-20b", true },
  { "DeepSeekV3", "deepseek-v3", true },
  { "DeepSeek-V3", "deepseek-v3", true },
  { "Qwen3_30B", "qwen3-30b", true },
  { "Qwen3_235B", "qwen3-235b", true },
  { "Qwen3 30B", "qwen3-30b", true },
  { "Qwen3 235B", "qwen3-235b", true },
  { "Kimi_K2", "kimi-k2", true },
  { "Kimi K2", "kimi-k2", true },
  { "Mixtral 8x7B", "mixtral-8x7b", true },
  { "Mixtral-8x7B", "mixtral-8x7b", true },
  { "Mixtral 8x22B", "mixtral-8x22b", true },
  { "Mixtral-8x22B", "mixtral-8x22b", true },
  { "Nemotron-4", "nemotron4-15b", false },
  { "Nemotron4", "nemotron4-15b", false },
  { "InternLM", "internlm-7b", false },
  { "MPT-", "mpt-7b", false },
  { "GPT", "gpt3-175b", false },
  { "gpt3", "gpt3-175b", false },
  { "Llama-3", "llama3-8b", false },
  { "LLAMA3", "llama3-8b", false },
  { "MaxText-", "llama2-7b", false }, /* its default decoder: gated, RMS norms, two tables */
};

/* Megatron-LM 2021 (v2.x): no sequence parallelism, fp16 gradients, reduced after the last microbatch. Its rows of 2022 say in
 * words where they have it. DeepSpeed's pipeline reduces at the end of the batch too. Megatron-Core and NeMo: the recipes have
 * sequence parallelism, tp_comm_overlap, overlap_grad_reduce and gradients in bf16 (grad_reduce_in_fp32 off, grad_sync_dtype
 * bf16). Megatron-DeepSpeed: DeepSpeed's pipeline engine (see --framework deepspeed). torchtitan: --framework torchtitan; async TP only where a row names it; its configs' selective checkpointing is per operation;
 * the loss is compiled since April 2025 (pytorch/torchtitan pull request 1033), before that torch.compile left it out. llm-foundry: FSDP over fp32 weights,
 * mixed_precision PURE: gathered and reduced in bf16. MaxText: --framework maxtext, XLA's collective matmul. */
#define MEGATRON_CORE                                                                              \
  .is_sequence_parallel = true, .is_tp_overlapped = true, .is_dp_overlapped = true,                \
  .options = { "framework=megatron", "grad-dtype=bf16", "reduce-dtype=bf16" }

#define MAXTEXT                                                                                    \
  .is_sequence_parallel = true, .is_tp_overlapped = true, .is_dp_overlapped = true,                \
  .options = { "framework=maxtext" }

static const PodTrainingFramework frameworks[] = {
  { "llm-foundry", .is_dp_overlapped = true, .options = { "framework=llm-foundry" } },
  { "Megatron-Bridge", MEGATRON_CORE },
  { "Megatron-Core", MEGATRON_CORE },
  { "NeMo Megatron", .options = { "framework=megatron-2021" } }, /* its launcher of 2022 */
  { "NeMo", MEGATRON_CORE },
  { "NVIDIA N", MEGATRON_CORE },
  { "InternEvo", .is_dp_overlapped = true, .options = { "framework=internevo" } },
  { "torchtitan",
    .is_sequence_parallel = true,
    .is_dp_overlapped = true,
    .splits_by_pp = true,
    .selective = "op",
    .fused_loss_year = 2025,
    .options = { "framework=torchtitan" } },
  { "MaxText", MAXTEXT },
  { "maxtext", MAXTEXT },
  { "DeepSpeed ZeRO-3", .options = { "framework=deepspeed-2021" } },
  { "Megatron-DeepSpeed", .before_year = 2023, .options = { "framework=bigscience" } },
  { "Megatron-DeepSpeed", .options = { "framework=megatron-deepspeed" } },
  { "Megatron", .options = { "framework=megatron-2021" } }, /* -LM */
  { "", .is_dp_overlapped = true },
};

/* FLOPs agree with the sources' own within 1 % (llm-foundry's smallest models: 3 %). NeMo's s*(24Lh^2... is left out: it counts KV
 * heads as if there were as many as heads. llm-foundry's 6N counts the tied table once, as the head; MaxText's counts its input table, 1 % of the model or less. */
static const PodTrainingConvention conventions[] = {
  { "model: 6*N*tok + 12*L*d*s^2", "megatron", false },
  { "hardware incl. recompute: 96*", "megatron", true },
  { "hardware incl. recompute (SC21", "megatron", true },
  { "Megatron SC21 formula", "megatron", true },
  { "Megatron model FLOPs (causal", "causal", false },
  { "72*B*L*s*h^2", "megatron", false },
  { "s*(12Lh^2", "megatron", false },
  { "MaxText 202", "megatron", false },
  { "MaxText log (before", "megatron", false },
  { "torchtitan MFU", "palm", false },
};

const PodTrainingSource pod_training_sources[] = {
  { "llm-foundry", "mosaicml/llm-foundry benchmarking tables (FSDP)", true, "llm-foundry" },
  { "bloom-prequel", "BigScience throughput sweep before BLOOM", true, "bloom-prequel" },
  { "megatron-bridge", "NVIDIA Megatron-Bridge performance summary", true, "megatron-bridge" },
  { "dgxc-benchmarking", "NVIDIA DGX Cloud benchmarking recipes", true, "dgxc-benchmarking" },
  { "internevo", "InternEvo performance tables", true, "internevo" },
  { "megatron-sc21-t1", "Narayanan et al., arXiv 2104.04473, table 1", true, "megatron-sc21" },
  { "megatron-sc21-t2", "Narayanan et al., arXiv 2104.04473, table 2", true, "megatron-sc21" },
  { "act-recompute-t5", "Korthikanti et al., arXiv 2205.05198, table 5", false, "act-recompute-t5" },
  { "maxtext-v5e", "MaxText on TPU v5e", true, "maxtext" },
  { "maxtext-v5p", "MaxText on TPU v5p", true, "maxtext" },
  { "tpu-recipes-trillium", "Google TPU recipes, v6e", true, NULL },
  { "tpu-recipes-v5p", "Google TPU recipes, v5p", true, NULL },
  { "gpu-recipes", "Google GPU recipes", true, NULL },
  { "torchtitan-2412", "torchtitan, arXiv 2410.06511", true, "torchtitan" },
  { "torchtitan-asynctp", "torchtitan, async tensor parallelism", true, "torchtitan" },
  { "torchtitan-2024", "torchtitan performance pages", true, "torchtitan" },
  { "torchtitan-h200", "torchtitan on H200", true, "torchtitan" },
  { "vtrain-multi", "VIA-Research/vTrain, 64 to 512 GPUs", true, "vtrain-multi" },
  { "vtrain-single", "VIA-Research/vTrain, 2 to 8 GPUs", true, NULL },
  { .key = NULL },
};

/* The first entry that fits wins. */
static const PodTrainingCause causes[] = {
  { "megatron-bridge", "GPT OSS", NULL, "experts op by op in eager PyTorch: about a fifth more than their bytes and launches; NCCL's exchanges over 800 Gb/s NICs" },
  { "megatron-bridge", "Qwen3", NULL, "a microbatch of one sequence on many experts: what the host takes to weave two of them" },
  { "megatron-bridge", "DeepSeek", NULL, "recipes of 2025: experts and exchanges before later releases' fusions" },
  { "megatron-bridge", "Kimi", NULL, "exchanges of tokens" },
  { "megatron-bridge", NULL, NULL, "fp4: no chip file has a table of its matmuls, nor of the casts that rotate and round at random" },
  { NULL, NULL, "DeepSpeed ZeRO-3", "gathers parameter by parameter: slower the more ranks there are" },
  { "bloom-prequel", NULL, NULL, "second iterations of runs under test; tensor parallelism of 8 with one or two sequences, and head sizes that 8 does not divide, ran slower than here" },
  { "internevo", NULL, NULL, "gradients of 512 and more ranks over shared RoCE" },
  { "llm-foundry", NULL, NULL, "small models and short steps: passes and launches of eager PyTorch" },
  { "torchtitan", NULL, NULL, "clock at 500 W, attention of long contexts" },
  { "tpu-recipes-trillium", NULL, NULL, "one logged step; matmuls of TPU v6e are not calibrated" },
  { "vtrain-multi", NULL, NULL, "outliers of the source: other rows of the same model and layout run as predicted" },
};

const char *
pod_training_cause (const PodTrainingRow *row)
{
  for (size_t i = 0; i < G_N_ELEMENTS (causes); i++)
    if ((causes[i].source == NULL || (row->source != NULL && g_str_has_prefix (row->source, causes[i].source)))
        && (causes[i].model == NULL || (row->model != NULL && g_str_has_prefix (row->model, causes[i].model)))
        && (causes[i].framework == NULL || (row->framework != NULL && g_str_has_prefix (row->framework, causes[i].framework))))
      return causes[i].cause;
  return "not known";
}

const PodTrainingMachine *
pod_training_machine (const PodTrainingRow *row)
{
  for (size_t i = 0; row->hardware != NULL && i < G_N_ELEMENTS (machines); i++)
    if (strstr (row->hardware, machines[i].hardware) != NULL
        && (machines[i].topology == NULL
            || (row->topology != NULL && strstr (row->topology, machines[i].topology) != NULL)))
      return &machines[i];
  return NULL;
}

const PodTrainingModel *
pod_training_model (const PodTrainingRow *row)
{
  for (size_t i = 0; row->model != NULL && i < G_N_ELEMENTS (models); i++)
    if (g_str_has_prefix (row->model, models[i].model))
      return &models[i];
  return NULL;
}

const PodTrainingFramework *
pod_training_framework (const PodTrainingRow *row)
{
  const size_t others = G_N_ELEMENTS (frameworks) - 1;

  for (size_t i = 0; row->framework != NULL && i < others; i++)
    if (g_str_has_prefix (row->framework, frameworks[i].framework)
        && (frameworks[i].before_year == 0 || (row->year > 0 && row->year < frameworks[i].before_year)))
      return &frameworks[i];
  return &frameworks[others];
}

const PodTrainingConvention *
pod_training_convention (const PodTrainingRow *row)
{
  for (size_t i = 0; row->flop_convention != NULL && i < G_N_ELEMENTS (conventions); i++)
    if (g_str_has_prefix (row->flop_convention, conventions[i].convention))
      return &conventions[i];
  return NULL;
}

const PodTrainingSource *
pod_training_source (const PodTrainingRow *row)
{
  for (const PodTrainingSource *source = pod_training_sources; source->key != NULL; source++)
    if (g_strcmp0 (source->key, row->source) == 0)
      return source;
  return NULL;
}
