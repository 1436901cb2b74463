#include "scenario/scenario.h"

#include <stddef.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/units.h"
#include "base/xml.h"
#include "network/packet.h"

#define AT(field) offsetof (PodScenario, field)

const PodOption pod_scenario_options[] = {
  { "framework", POD_OPTION_TEXT, AT (framework), "NAME", "defaults of a framework (maxtext, megatron, torchtitan, deepspeed, ...) for what is not said, and what its steps lose" },
  { "topology", POD_OPTION_TEXT, AT (topology), "T", "machine: a file, a name in topologies/, or CHIP:SHAPE (tpu-v5p:16x16x16, h100:8x128)" },
  { "model", POD_OPTION_TEXT, AT (model), "M", "model: a Hugging Face config.json, or a name in workloads/models/" },
  { "workload", POD_OPTION_TEXT, AT (workload), "FILE", "XML file with model, batch, precision and layout; options override it" },
  { "layout", POD_OPTION_TEXT, AT (layout), "AXES", "degrees: \"dp=2 fsdp=64 tp=8 pp=4 ep=8\"; one may be auto" },
  { "mesh", POD_OPTION_LIST, AT (mesh), "AXES", "the layout as JAX says it: a mesh with named axes, \"X=4,Y=8\", and --shard; may be repeated" },
  { "shard", POD_OPTION_LIST, AT (shard), "TENSOR=DIMS", "which axes of --mesh cut a tensor: \"W_in=[D_X, F_Y]\"; may be repeated" },
  { "map", POD_OPTION_TEXT, AT (map), "MAP", "axes on a torus, innermost first: \"tp=x:4 fsdp=x:4,y,z\"" },
  { "order", POD_OPTION_TEXT, AT (order), "AXES", "axes on a switched machine, innermost first: tp,cp,ep,fsdp,dp,pp" },
  { "seq-len", POD_OPTION_TEXT, AT (seq_len), "N", "tokens of a sequence" },
  { "global-batch", POD_OPTION_TEXT, AT (global_batch), "N|Ntok", "sequences (or tokens) of a step" },
  { "micro-batch", POD_OPTION_COUNT_OR_ALL, AT (micro_batch), "N|all", "sequences of a microbatch on one data rank (1), or all that it has" },
  { "schedule", POD_OPTION_TEXT, AT (schedule), "NAME|FILE", "pipeline schedule: 1f1b, gpipe, interleaved, breadth-first, zb-h1, zb-h2, zb-v, dualpipe, dualpipe-v, or a file of slots" },
  { "recompute", POD_OPTION_TEXT, AT (recompute), "KIND", "activations computed again in backward: none, selective (attention), full, full:N, block:N, every:N, op, save:TENSORS, offload[:TENSORS]" },
  { "cp-kind", POD_OPTION_TEXT, AT (cp_kind), "KIND", "how cp meets keys and values: ring, allgather, ulysses (ring; on TPUs allgather)" },
  { "attention-kind", POD_OPTION_TEXT, AT (attention_kind), "KIND", "kernels of core attention: flash, unfused (keeps all scores)" },
  { "zero", POD_OPTION_WHOLE, AT (zero), "STAGE", "what dp shards: 0 nothing, 1 optimizer, 2 and gradients, 3 turns dp into fsdp" },
  { "optimizer", POD_OPTION_TEXT, AT (optimizer), "NAME", "adam, adamw-fp32 (adam with an fp32 master copy), adam-bf16, adam-8bit, adafactor, muon, sgd" },
  { "dtype", POD_OPTION_TEXT, AT (dtype), "TYPE", "of matmuls: bf16, fp16, fp32; fp8, fp4, int8: of their operands alone, cast from bf16" },
  { "scaling", POD_OPTION_TEXT, AT (scaling), "KIND", "how fp8, fp4 and int8 casts find their scales: current (a pass before), delayed, block" },
  { "cross-entropy", POD_OPTION_TEXT, AT (cross_entropy), "KIND", "fused (one fp32 copy of the logits), or eager: PyTorch's op by op" },
  { "grad-bucket", POD_OPTION_TEXT, AT (grad_bucket), "BYTES", "dp reduces at least so many bytes of gradients at once (default: each layer's)" },
  { "stage-outputs", POD_OPTION_TEXT, AT (stage_outputs), "KIND", "what a pipeline stage sent is freed (default), or kept until its backward (DeepSpeed)" },
  { "grad-accumulation", POD_OPTION_TEXT, AT (grad_accumulation), "KIND", "fused (matmuls add to the gradients kept), or apart: a microbatch's stand whole beside them" },
  { "lora", POD_OPTION_COUNT, AT (lora), "RANK", "weights are frozen; each linear layer trains an adapter of this rank" },
  { "offload-optimizer", POD_OPTION_FLAG, AT (offload_optimizer), NULL, "the optimizer's state lives in the host's memory and comes over PCIe in pieces (off)" },
  { "clip-grad", POD_OPTION_FLAG, AT (clip_grad), NULL, "find the norm of all gradients before the update (on; off at fidelity book)" },
  { "param-dtype", POD_OPTION_TEXT, AT (param_dtype), "TYPE", "of weights as kept (bf16)" },
  { "gather-dtype", POD_OPTION_TEXT, AT (gather_dtype), "TYPE", "of weights as gathered and multiplied (bf16, or the dtype if that is wider)" },
  { "master-dtype", POD_OPTION_TEXT, AT (master_dtype), "TYPE", "of the optimizer's copy of the weights: fp32, none" },
  { "grad-dtype", POD_OPTION_TEXT, AT (grad_dtype), "TYPE", "of gradients as kept from microbatch to microbatch: bf16, fp32" },
  { "reduce-dtype", POD_OPTION_TEXT, AT (reduce_dtype), "TYPE", "of gradients as reduced (as kept)" },
  { "sequence-parallel", POD_OPTION_FLAG, AT (sequence_parallel), NULL, "tp shards tokens between its matmuls (on)" },
  { "overlap-fsdp", POD_OPTION_FLAG, AT (overlap_fsdp), NULL, "gather weights ahead of their use (on)" },
  { "overlap-dp", POD_OPTION_FLAG, AT (overlap_dp), NULL, "reduce gradients behind backward compute (on)" },
  { "overlap-tp", POD_OPTION_FLAG, AT (overlap_tp), NULL, "collective matmul: tp collectives in pieces behind their matmuls (off)" },
  { "scatter-p2p", POD_OPTION_FLAG, AT (scatter_p2p), NULL, "without sequence parallelism each tensor rank sends its part to the next stage, which gathers what arrives (off)" },
  { "overlap-p2p", POD_OPTION_FLAG, AT (overlap_p2p), NULL, "pipeline sends go on while the next microbatch computes (on)" },
  { "overlap-ep", POD_OPTION_FLAG, AT (overlap_ep), NULL, "one microbatch's tokens go to their experts and back while another is computed, forward beside backward (off)" },
  { "prefetch", POD_OPTION_WHOLE, AT (prefetch), "N", "layers that FSDP gathers ahead (1)" },
  { "fsdp-sync", POD_OPTION_TEXT, AT (fsdp_sync), "WHEN", "FSDP gathers weights and reduces gradients every microbatch (default), once a step, or pipeline: once where pp > 1" },
  { "stage-layers", POD_OPTION_TEXT, AT (stage_layers), "LIST", "layers of each (virtual) stage in model order, 7,8,8,7, or balanced (by FLOPs)" },
  { "embed-head-as-layers", POD_OPTION_FLAG, AT (embed_head_as_layers), NULL, "embedding and head count as a layer each when layers are dealt to stages" },
  { "capacity-factor", POD_OPTION_TEXT, AT (capacity_factor), "X|dropless", "tokens that each expert computes over the mean, filled up or cut off there; dropless (default): what it gets" },
  { "expert-imbalance", POD_OPTION_TEXT, AT (expert_imbalance), "X|zipf:S|FILE", "load of the busiest rank's experts over the mean (1), a distribution, or a file of each expert's load" },
  { "dispatch-dtype", POD_OPTION_TEXT, AT (dispatch_dtype), "TYPE", "of tokens on their way to experts: bf16 (default), fp8 with an fp32 scale for each 128 values" },
  { "route-nodes", POD_OPTION_COUNT, AT (route_nodes), "N", "a token's experts stand on at most N nodes, and each gets it once (no limit: a copy for each expert)" },
  { "expert-ops", POD_OPTION_TEXT, AT (expert_ops), "KIND", "biases and clamped activations of experts: fused (into kernels beside them), or eager: op by op" },
  { "memory-context", POD_OPTION_TEXT, AT (memory_context), "SIZE", "memory that driver and libraries take (the chip file's)" },
  { "memory-comm-buffers", POD_OPTION_TEXT, AT (memory_comm_buffers), "SIZE", "memory of the communicators' buffers (by their number and the library's channels)" },
  { "memory-fragmentation", POD_OPTION_TEXT, AT (memory_fragmentation), "RATIO", "part of the peak that the allocator cannot use (2 % on GPUs, 0 on TPUs)" },
  { "allow-idle", POD_OPTION_FLAG, AT (allow_idle), NULL, "a layout may use fewer devices than there are" },
  { "document-len", POD_OPTION_COUNT, AT (document_len), "N", "sequences are packed with documents of N tokens, which attend to themselves alone" },
  { "causal", POD_OPTION_FLAG, AT (causal), NULL, "attention is causal (on)" },
  { "dropout", POD_OPTION_FLAG, AT (dropout), NULL, "dropout after attention and FFN, of scores where they are unfused (off)" },
  { "layers", POD_OPTION_COUNT, AT (layers), "N", "override the model's layers" },
  { "hidden", POD_OPTION_COUNT, AT (hidden), "N", "override the hidden size" },
  { "heads", POD_OPTION_COUNT, AT (heads), "N", "override the query heads" },
  { "kv-heads", POD_OPTION_COUNT, AT (kv_heads), "N", "override the KV heads" },
  { "head-dim", POD_OPTION_COUNT, AT (head_dim), "N", "override the head size" },
  { "ffn", POD_OPTION_COUNT, AT (ffn), "N", "override the FFN width" },
  { "vocab", POD_OPTION_COUNT, AT (vocab), "N", "override the vocabulary" },
  { "mtp", POD_OPTION_COUNT, AT (mtp), "N", "multi-token prediction modules that train behind the last layer (0)" },
  { "fidelity", POD_OPTION_TEXT, AT (fidelity), "F", "book, ideal, calibrated (default)" },
  { "network", POD_OPTION_TEXT, AT (network), "N", "analytic, flow (default), packet" },
  { "packet", POD_OPTION_TEXT, AT (packet), "LIST", "with --network packet: " POD_PACKET_WORDS },
  { "fold", POD_OPTION_TEXT, AT (fold), "auto|off", "one representative of equal ranks (auto), or every rank (off)" },
  { "algorithm", POD_OPTION_TEXT, AT (algorithm), "NAME", "collective algorithm where it fits (auto)" },
  { "library", POD_OPTION_TEXT, AT (library), "NAME", "communication library whose cost tables apply: nccl-2.27, rccl, xla, ... (by vendor)" },
  { "flops-convention", POD_OPTION_TEXT, AT (flops_convention), "C", "of mfu: causal (default), megatron, palm, 6nd" },
  { "tokens", POD_OPTION_TEXT, AT (tokens), "TOTAL", "tokens of the whole training: days, cost, energy" },
  { "price", POD_OPTION_PRICE, AT (price), "USD", "price of a chip-hour (the chip file's)" },
  { "availability", POD_OPTION_SHARE, AT (availability), "RATIO", "share of time that trains (1)" },
  { "set", POD_OPTION_LIST, AT (set), "PATH=VALUE", "override a number: chip.hbm_bandwidth=1.23TB/s, model.layers=8, framework.launch=5us; may be repeated" },
  { "strict", POD_OPTION_FLAG, AT (strict), NULL, "an option that contradicts the workload file is an error" },
  { NULL, POD_OPTION_TEXT, 0, NULL, NULL },
};

PodScenario *
pod_scenario_new (void)
{
  PodScenario *scenario = g_new0 (PodScenario, 1);

  scenario->price = -1;
  scenario->availability = -1;
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (option->kind == POD_OPTION_FLAG)
      *(int *) ((char *) scenario + option->offset) = -1;
    else if (option->kind == POD_OPTION_WHOLE)
      *(uint64_t *) ((char *) scenario + option->offset) = UINT64_MAX;
    else if (option->kind == POD_OPTION_LIST)
      *(GPtrArray **) ((char *) scenario + option->offset) = g_ptr_array_new_with_free_func (g_free);
  return scenario;
}

static gpointer
copy_text (gconstpointer text, gpointer data)
{
  (void) data;
  return g_strdup (text);
}

static GPtrArray *
copy_list (GPtrArray *list)
{
  GPtrArray *copy = g_ptr_array_copy (list, copy_text, NULL);

  g_ptr_array_set_free_func (copy, g_free);
  return copy;
}

PodScenario *
pod_scenario_copy (const PodScenario *scenario)
{
  PodScenario *copy = g_memdup2 (scenario, sizeof *scenario);

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (option->kind == POD_OPTION_TEXT)
      *(char **) ((char *) copy + option->offset) = g_strdup (*(char *const *) ((const char *) scenario + option->offset));
    else if (option->kind == POD_OPTION_LIST)
      *(GPtrArray **) ((char *) copy + option->offset) = copy_list (*(GPtrArray *const *) ((const char *) scenario + option->offset));
  copy->framework_note = g_strdup (scenario->framework_note);
  return copy;
}

void
pod_scenario_free (PodScenario *scenario)
{
  if (scenario == NULL)
    return;
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (option->kind == POD_OPTION_TEXT)
      g_free (*(char **) ((char *) scenario + option->offset));
    else if (option->kind == POD_OPTION_LIST)
      g_ptr_array_unref (*(GPtrArray **) ((char *) scenario + option->offset));
  g_free (scenario->framework_note);
  g_free (scenario);
}

static const PodOption *
find_option (const char *name, bool *out_is_negated)
{
  *out_is_negated = false;
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    {
      if (strcmp (option->name, name) == 0)
        return option;
      if (option->kind == POD_OPTION_FLAG && g_str_has_prefix (name, "no-") && strcmp (option->name, name + 3) == 0)
        {
          *out_is_negated = true;
          return option;
        }
    }
  return NULL;
}

static bool
set_flag (int *target, const char *value, bool is_negated, GError **error)
{
  bool is_true = value == NULL || strcmp (value, "true") == 0 || strcmp (value, "1") == 0 || strcmp (value, "yes") == 0;

  if (!is_true && strcmp (value, "false") != 0 && strcmp (value, "0") != 0 && strcmp (value, "no") != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s' is not true or false", value);
      return false;
    }
  *target = is_true != is_negated;
  return true;
}

/* Results hold whole numbers of 63 bits. */
static bool
set_whole (uint64_t *target, const char *value, uint64_t least, GError **error)
{
  uint64_t whole;

  if (!pod_parse_whole (value, POD_UNIT_COUNT, &whole, error))
    return false;
  if (whole < least || whole > INT64_MAX)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be at least %" G_GUINT64_FORMAT " and below 2^63, got '%s'", least, value);
      return false;
    }
  *target = whole;
  return true;
}

static bool
set_share (double *target, const char *value, GError **error)
{
  double share;

  if (!pod_parse_quantity (value, POD_UNIT_RATIO, &share, error))
    return false;
  if (!(share > 0 && share <= 1))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be above 0 and at most 1, got '%s'", value);
      return false;
    }
  *target = share;
  return true;
}

bool
pod_scenario_set (PodScenario *scenario, const char *name, const char *value, GError **error)
{
  bool is_negated;
  const PodOption *option = find_option (name, &is_negated);
  void *target;
  bool is_right = true;

  if (option == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s: unknown option", name);
      return false;
    }
  target = (char *) scenario + option->offset;
  switch (option->kind)
    {
    case POD_OPTION_TEXT:
      g_free (*(char **) target);
      *(char **) target = g_strdup (value);
      break;
    case POD_OPTION_LIST:
      g_ptr_array_add (*(GPtrArray **) target, g_strdup (value));
      break;
    case POD_OPTION_COUNT:
      is_right = set_whole (target, value, 1, error);
      break;
    case POD_OPTION_COUNT_OR_ALL:
      if (strcmp (value, "all") == 0)
        *(uint64_t *) target = POD_ALL;
      else
        is_right = set_whole (target, value, 1, error);
      break;
    case POD_OPTION_WHOLE:
      is_right = set_whole (target, value, 0, error);
      break;
    case POD_OPTION_PRICE:
      is_right = pod_parse_quantity (value, POD_UNIT_USD_PER_H, target, error);
      break;
    case POD_OPTION_SHARE:
      is_right = set_share (target, value, error);
      break;
    case POD_OPTION_FLAG:
      is_right = set_flag (target, value, is_negated, error);
      break;
    }
  if (!is_right)
    g_prefix_error (error, "--%s: ", name);
  return is_right;
}

bool
pod_scenario_is_set (const PodScenario *scenario, const PodOption *option)
{
  const void *at = (const char *) scenario + option->offset;

  switch (option->kind)
    {
    case POD_OPTION_TEXT:
      return *(char *const *) at != NULL;
    case POD_OPTION_LIST:
      return (*(GPtrArray *const *) at)->len > 0;
    case POD_OPTION_COUNT:
    case POD_OPTION_COUNT_OR_ALL:
      return *(const uint64_t *) at != 0;
    case POD_OPTION_WHOLE:
      return *(const uint64_t *) at != UINT64_MAX;
    case POD_OPTION_PRICE:
    case POD_OPTION_SHARE:
      return *(const double *) at >= 0;
    case POD_OPTION_FLAG:
      return *(const int *) at >= 0;
    }
  return false;
}

char *
pod_scenario_get (const PodScenario *scenario, const PodOption *option)
{
  const void *at = (const char *) scenario + option->offset;
  GString *lines;

  switch (option->kind)
    {
    case POD_OPTION_TEXT:
      return g_strdup (*(char *const *) at);
    case POD_OPTION_COUNT_OR_ALL:
      if (*(const uint64_t *) at == POD_ALL)
        return g_strdup ("all");
      /* fall through */
    case POD_OPTION_COUNT:
    case POD_OPTION_WHOLE:
      return g_strdup_printf ("%" G_GUINT64_FORMAT, *(const uint64_t *) at);
    case POD_OPTION_PRICE:
    case POD_OPTION_SHARE:
      return pod_format_double (*(const double *) at);
    case POD_OPTION_FLAG:
      return g_strdup (*(const int *) at == 1 ? "true" : "false");
    case POD_OPTION_LIST:
      break;
    }
  lines = g_string_new (NULL);
  for (guint i = 0; i < (*(GPtrArray *const *) at)->len; i++)
    g_string_append_printf (lines, "%s%s", i > 0 ? "\n" : "", (const char *) g_ptr_array_index (*(GPtrArray *const *) at, i));
  return g_string_free (lines, FALSE);
}

/* What said the layout before the workload file was read: it is one thing, by --layout or by --mesh and --shard. */
typedef struct
{
  bool has_layout;
  bool has_mesh;
  bool has_shard;
} SaidLayout;

/* The option elsewhere that an attribute of the file gives way to, NULL: none. */
static const char *
overriding (const PodScenario *scenario, const SaidLayout *said, const PodOption *option)
{
  const bool is_shard = option->offset == AT (shard);

  if (option->offset == AT (layout))
    return said->has_layout ? "layout" : said->has_mesh ? "mesh" : said->has_shard ? "shard" : NULL;
  if (option->offset == AT (mesh) || is_shard)
    return said->has_layout ? "layout" : (is_shard ? said->has_shard : said->has_mesh) ? option->name : NULL;
  return pod_scenario_is_set (scenario, option) && option->kind != POD_OPTION_LIST ? option->name : NULL;
}

/* One attribute of the workload file: an option of that name, unless it was said elsewhere. */
static bool
take_attribute (PodScenario *scenario, const SaidLayout *said, const PodXml *xml, PodXmlNode *node, const char *name, const char *value, GError **error)
{
  bool is_negated;
  const PodOption *option = find_option (name, &is_negated);
  const char *other;

  if (option == NULL || option->offset == AT (workload))
    return pod_xml_error (xml, node, error, "%s: no such option", name);
  other = overriding (scenario, said, option);
  if (other != NULL)
    {
      if (scenario->strict == 1)
        return pod_xml_error (xml, node, error, "%s=\"%s\" contradicts --%s on the command line (--strict)", name, value, other);
      return true;
    }
  if (option->kind == POD_OPTION_LIST) /* before those of the command line, which win by coming last */
    {
      g_ptr_array_insert (*(GPtrArray **) ((char *) scenario + option->offset), 0, g_strdup (value));
      return true;
    }
  if (!pod_scenario_set (scenario, name, value, error))
    {
      g_prefix_error (error, "%s:%u: ", xml->file, node->line);
      return false;
    }
  return true;
}

bool
pod_scenario_load_workload (PodScenario *scenario, GError **error)
{
  g_autofree char *file = NULL;
  g_autofree char *schema = NULL;
  g_autoptr (PodXml) xml = NULL;
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const SaidLayout said = { scenario->layout != NULL, scenario->mesh->len > 0, scenario->shard->len > 0 };

  if (scenario->workload == NULL)
    return true;
  file = pod_data_find ("workloads", scenario->workload, ".xml");
  schema = pod_data_find ("workloads", "workload.xsd", "");
  if (file == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--workload: %s: no such file, nor a name in workloads/", scenario->workload);
      return false;
    }
  if (schema == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: the schema workloads/workload.xsd is missing: set PODSIM_PATH", file);
      return false;
    }
  xml = pod_xml_load (file, schema, error);
  if (xml == NULL)
    return false;
  for (PodXmlNode *node = pod_xml_child (pod_xml_root (xml), NULL); node != NULL; node = pod_xml_next (node, NULL))
    for (unsigned i = 0; i < node->n_attributes; i++)
      {
        const PodXmlAttribute *attribute = &node->attributes[i];

        /* Of another name space, as xml:lang is, or "xlink:seq-len" */
        if (attribute->has_prefix)
          return pod_xml_error (xml, node, error, "%s: no option has a prefix", attribute->name);
        if (!g_hash_table_add (seen, g_strdup (attribute->name)))
          return pod_xml_error (xml, node, error, "%s: stands in two elements", attribute->name);
        if (!take_attribute (scenario, &said, xml, node, attribute->name, attribute->value, error))
          return false;
      }
  return true;
}
