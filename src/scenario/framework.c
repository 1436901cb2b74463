#include <string.h>

#include "base/error.h"
#include "scenario/scenario.h"

/* What frameworks do unless told otherwise, as options of a run. */

typedef struct
{
  const char *option;
  const char *value; /* NULL for a flag that is on */
} Default;

static const struct
{
  const char *name;
  Default defaults[14];
} frameworks[] = {
  /* MaxText, configs/base.yml: weight_dtype and grad_dtype float32, dtype bfloat16, adam moments in the weights' dtype, remat_policy full,
   * gradient_clipping_threshold 1.0, context_parallel_strategy all_gather. The weights are their own master; XLA converts them before it gathers. */
  { "maxtext",
    { { "param-dtype", "fp32" }, { "master-dtype", "none" }, { "gather-dtype", "bf16" }, { "grad-dtype", "fp32" }, { "reduce-dtype", "bf16" }, { "recompute", "full" },
      { "optimizer", "adam" }, { "clip-grad", NULL }, { "cp-kind", "allgather" } } },
  /* Megatron-LM, arguments.py: with --bf16 main gradients are accumulated and reduced in fp32 (accumulate_allreduce_grads_in_fp32), the
   * optimizer holds an fp32 copy of the weights: 18 bytes a parameter; clip_grad 1.0; overlap_grad_reduce off; no recomputation; cp_comm_type p2p. */
  { "megatron",
    { { "param-dtype", "bf16" }, { "master-dtype", "fp32" }, { "grad-dtype", "fp32" }, { "reduce-dtype", "fp32" }, { "optimizer", "adam" }, { "no-overlap-dp", NULL },
      { "recompute", "none" }, { "clip-grad", NULL }, { "cp-kind", "ring" } } },
  /* torchtitan: FSDP2 with mixed_precision_param bfloat16 and mixed_precision_reduce float32 over fp32 weights, AdamW in their dtype,
   * max_norm 1.0: 16 bytes a parameter; cross-entropy of float() logits; context_parallel_rotate_method allgather;
   * its 8B configuration's selective checkpointing per operation. */
  { "torchtitan",
    { { "param-dtype", "fp32" }, { "master-dtype", "none" }, { "gather-dtype", "bf16" }, { "grad-dtype", "fp32" }, { "reduce-dtype", "fp32" }, { "optimizer", "adam" },
      { "clip-grad", NULL }, { "cp-kind", "allgather" }, { "cross-entropy", "eager" }, { "recompute", "op" } } },
  /* DeepSpeed's BF16_Optimizer: bf16 weights, fp32 gradients accumulated (gradient_accumulation_dtype) and reduced in bf16
   * (communication_data_type), fp32 copy of the weights; gradients of a microbatch are added when it is through (update_hp_grads); a stage's outputs stay in its
   * pipe_buffers until their backward. 15 % of what PyTorch's allocator holds without expandable segments is lost between buffers: the mean of
   * eight models fine-tuned or trained with ZeRO and recomputation (GMLake, arXiv 2401.08156); sequence parallelism is Ulysses. */
  { "deepspeed",
    { { "param-dtype", "bf16" }, { "master-dtype", "fp32" }, { "grad-dtype", "fp32" }, { "reduce-dtype", "bf16" }, { "optimizer", "adam" }, { "clip-grad", NULL },
      { "cp-kind", "ulysses" }, { "grad-accumulation", "apart" }, { "stage-outputs", "kept" },
      { "memory-fragmentation", "0.176" } } },
};

static bool
is_said (const PodScenario *scenario, const char *name)
{
  if (g_str_has_prefix (name, "no-"))
    name += 3;
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (strcmp (option->name, name) == 0)
      return pod_scenario_is_set (scenario, option);
  return false;
}

bool
pod_scenario_apply_framework (PodScenario *scenario, GError **error)
{
  if (scenario->framework == NULL)
    return true;
  for (unsigned i = 0; i < G_N_ELEMENTS (frameworks); i++)
    if (strcmp (frameworks[i].name, scenario->framework) == 0)
      {
        g_autoptr (GString) note = g_string_new ("framework ");

        g_string_append_printf (note, "%s:", frameworks[i].name);
        for (const Default *d = frameworks[i].defaults; d->option != NULL; d++)
          {
            if (is_said (scenario, d->option))
              continue;
            if (!pod_scenario_set (scenario, d->option, d->value, error))
              return false;
            g_string_append_printf (note, " --%s%s%s", d->option, d->value != NULL ? "=" : "", d->value != NULL ? d->value : "");
          }
        g_free (scenario->framework_note);
        scenario->framework_note = g_string_free (g_steal_pointer (&note), FALSE);
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--framework: unknown '%s'; known are maxtext, megatron, torchtitan, deepspeed", scenario->framework);
  return false;
}
