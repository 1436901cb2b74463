#include "validate/training-scenario.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "validate/training-sources.h"

/* What the next word of a row becomes; errors name the field. */
static bool G_GNUC_PRINTF (4, 5)
set (PodScenario *scenario, const char *option, GError **error, const char *format, ...)
{
  g_autofree char *value = NULL;
  va_list arguments;

  va_start (arguments, format);
  value = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return pod_scenario_set (scenario, option, value, error);
}

static bool
set_flag (PodScenario *scenario, const char *option, bool is_on, GError **error)
{
  return pod_scenario_set (scenario, option, is_on ? "true" : "false", error);
}

static bool
has_word (const char *text, const char *word)
{
  return text != NULL && strstr (text, word) != NULL;
}

/* ---- machine ---- */

/* The number in front of @mark in @text: 16 in "16x v5e-256 (16x16 2D torus), slices over DCN". */
static uint64_t
leading_count (const char *text, const char *mark)
{
  const char *end = NULL;
  uint64_t count = text != NULL ? g_ascii_strtoull (text, (char **) &end, 10) : 0;

  return count > 0 && g_str_has_prefix (end, mark) ? count : 1;
}

/* A slice of @n chips as a torus: powers of two as alike as can be, the largest last. */
static char *
torus_shape (uint64_t n, bool is_three)
{
  const unsigned n_axes = is_three ? 3 : 2;
  uint64_t size[3] = { 1, 1, 1 };

  if (n == 0 || (n & (n - 1)) != 0)
    return NULL;
  for (unsigned at = n_axes - 1; n > 1; n /= 2, at = (at + n_axes - 1) % n_axes)
    size[at] *= 2;
  return is_three ? g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT
                                     "x%" G_GUINT64_FORMAT, size[0], size[1], size[2])
                  : g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT, size[0], size[1]);
}

/* Which TPUs are three-dimensional: those with six links. */
static bool
is_three_dimensional (const char *chip)
{
  static const char *const chips[] = { "tpu-v4", "tpu-v5p", "tpu-v7x", NULL };

  return g_strv_contains (chips, chip);
}

static char *
torus_text (const PodTrainingRow *row, const char *chip)
{
  const uint64_t n_slices = leading_count (row->topology, "x v");
  g_autofree char *shape
      = row->n_chips % n_slices == 0
            ? torus_shape (row->n_chips / n_slices, is_three_dimensional (chip))
            : NULL;

  if (shape == NULL)
    return NULL;
  return n_slices == 1
             ? g_strdup_printf ("%s:%s", chip, shape)
             : g_strdup_printf ("%s:%s*%" G_GUINT64_FORMAT, chip, shape, n_slices);
}

/* As many chips of a domain as divide the job: 64 of each NVL72 rack for 128 GPUs, whole nodes of 8 otherwise. */
static char *
switched_text (const PodTrainingRow *row, const PodTrainingMachine *machine)
{
  uint64_t n_domain = MIN (machine->domain, row->n_chips);

  while (row->n_chips % n_domain != 0)
    n_domain--;
  return g_strdup_printf ("%s:%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT "%s%s", machine->chip,
                          n_domain, row->n_chips / n_domain, machine->options != NULL ? "," : "",
                          machine->options != NULL ? machine->options : "");
}

static bool
set_machine (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const PodTrainingMachine *machine = pod_training_machine (row);
  g_autofree char *text = NULL;

  if (machine == NULL || machine->chip == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "machine not mapped: %s",
                   row->hardware != NULL ? row->hardware : "not stated");
      return false;
    }
  text = machine->domain > 0 ? switched_text (row, machine) : torus_text (row, machine->chip);
  if (text == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "shape of the slice not stated: %s",
                   row->topology != NULL ? row->topology : "NA");
      return false;
    }
  for (size_t i = 0; i < G_N_ELEMENTS (machine->set) && machine->set[i] != NULL; i++)
    if (!pod_scenario_set (scenario, "set", machine->set[i], error))
      return false;
  return pod_scenario_set (scenario, "topology", text, error);
}

/* ---- model ---- */

/* Where no name fits: a dense decoder by its widths, gated as Llama or plain as GPT. */
static const PodTrainingModel *
model_of_row (const PodTrainingRow *row)
{
  static const PodTrainingModel gated = { "", "llama2-7b", false };
  static const PodTrainingModel plain = { "", "gpt3-175b", false };
  const PodTrainingModel *model = pod_training_model (row);

  if (model != NULL)
    return model;
  if (row->n_experts > 0 || row->gated == NULL)
    return NULL;
  return strcmp (row->gated, "Y") == 0 ? &gated : &plain;
}

/* "51200", or in thousands as "250k (padded 250880 fits FLOPs)": a run pads it as Megatron does. 0: not stated. */
static uint64_t
vocab_of_row (const PodTrainingRow *row)
{
  char *end = NULL;
  uint64_t vocab = row->vocab != NULL ? g_ascii_strtoull (row->vocab, &end, 10) : 0;

  return end != NULL && *end == 'k' ? vocab * 1000 : vocab;
}

static bool
set_widths (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const uint64_t vocab = vocab_of_row (row);
  const struct
  {
    const char *option;
    uint64_t value;
  } widths[] = {
    { "layers", row->layers },     { "hidden", row->hidden },     { "heads", row->heads },
    { "kv-heads", row->kv_heads }, { "ffn", row->ffn },
  };

  for (size_t i = 0; i < G_N_ELEMENTS (widths); i++)
    {
      if (widths[i].value == 0)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "not stated: %s", widths[i].option);
          return false;
        }
      if (!set (scenario, widths[i].option, error, "%" G_GUINT64_FORMAT, widths[i].value))
        return false;
    }
  if (row->head_dim != NULL && !pod_scenario_set (scenario, "head-dim", row->head_dim, error))
    return false;
  if (vocab == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "not stated: vocab");
      return false;
    }
  return set (scenario, "vocab", error, "%" G_GUINT64_FORMAT, vocab);
}

static bool
set_model (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const PodTrainingModel *model = model_of_row (row);

  if (model == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "model not mapped: %s",
                   row->model != NULL ? row->model : "not stated");
      return false;
    }
  if (!pod_scenario_set (scenario, "model", model->file, error))
    return false;
  /* A table of learned positions is as long as the sequences */
  return model->is_whole
         || (set (scenario, "set", error, "model.max_positions=%" G_GUINT64_FORMAT, row->seq_len)
             && set_widths (scenario, row, error));
}

/* ---- layout ---- */

/* Layers of each part while a pipeline layout is read. */
typedef struct
{
  GArray *counts; /* uint32_t, of finished parts */
  uint32_t open;  /* of the part that goes on */
} Parts;

static bool
add_letter (Parts *parts, char letter, uint64_t n_times)
{
  for (uint64_t i = 0; i < n_times; i++)
    if (letter == '|')
      {
        g_array_append_val (parts->counts, parts->open);
        parts->open = 0;
      }
    else
      parts->open += letter == 't';
  return strchr ("Etm|L", letter) != NULL;
}

/* "*14" at *at: 14; 1 where there is no star. */
static uint64_t
read_times (const char **at)
{
  char *end;
  uint64_t n;

  if (**at != '*')
    return 1;
  n = g_ascii_strtoull (*at + 1, &end, 10);
  *at = end;
  return MIN (n, 10000);
}

/* The bracket that closes the one before @inside; NULL: none does. */
static const char *
closing_bracket (const char *inside)
{
  unsigned depth = 1;

  for (; *inside != '\0'; inside++)
    {
      depth += *inside == '(';
      depth -= *inside == ')';
      if (depth == 0)
        return inside;
    }
  return NULL;
}

/* Letters until @stop; a bracket is read as often as the star behind it says. */
static bool
read_parts (const char **at, char stop, Parts *parts)
{
  while (**at != stop)
    {
      const char *inside = *at + 1;
      const char *close;
      uint64_t n_times;

      if (**at == '(')
        {
          close = closing_bracket (inside);
          if (close == NULL)
            return false;
          *at = close + 1;
          n_times = read_times (at);
          for (uint64_t i = 0; i < n_times; i++)
            {
              const char *again = inside;

              if (!read_parts (&again, ')', parts))
                return false;
            }
          continue;
        }
      if (**at == '\0')
        return false;
      *at = inside;
      n_times = read_times (at);
      if (!add_letter (parts, inside[-1], n_times))
        return false;
    }
  return true;
}

char *
pod_training_pipeline_layout (const char *text, uint64_t n_parts, uint64_t n_layers)
{
  g_autoptr (GArray) counts = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GString) out = g_string_new (NULL);
  Parts parts = { .counts = counts };
  uint64_t sum = 0;

  if (!read_parts (&text, '\0', &parts) || !add_letter (&parts, '|', 1) || counts->len != n_parts)
    return NULL;
  for (guint i = 0; i < counts->len; i++)
    {
      sum += g_array_index (counts, uint32_t, i);
      g_string_append_printf (out, "%s%u", i > 0 ? "," : "", g_array_index (counts, uint32_t, i));
    }
  return sum == n_layers ? g_string_free (g_steal_pointer (&out), FALSE) : NULL;
}

/* Virtual stages; "interleaved 1F1B (stages/rank not stated)" has two, the least that interleaves. */
static uint64_t
vpp_of_row (const PodTrainingRow *row)
{
  uint64_t vpp = 1;

  if (row->vpp != NULL && !pod_parse_whole (row->vpp, POD_UNIT_COUNT, &vpp, NULL))
    vpp = 2;
  return MAX (vpp, 1);
}

/* Layers that the parts do not divide: as the source lays them out, with embedding and head as a layer each where that
 * divides, else balanced. */
static bool
set_stages (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const uint64_t n_parts = row->pp * vpp_of_row (row);
  const char *mark = has_word (row->note, "pp_layout=") ? strstr (row->note, "pp_layout=") : NULL;
  g_autofree char *given = NULL;

  if (n_parts == 1)
    return true;
  if (mark != NULL)
    {
      g_autofree char *text = g_strdup (mark + strlen ("pp_layout="));

      text[strcspn (text, " ,;")] = '\0';
      given = pod_training_pipeline_layout (text, n_parts, row->layers);
    }
  if (given != NULL)
    return pod_scenario_set (scenario, "stage-layers", given, error);
  if (row->layers % n_parts == 0)
    return true;
  if ((row->layers + 2) % n_parts == 0)
    return set_flag (scenario, "embed-head-as-layers", true, error);
  return pod_scenario_set (scenario, "stage-layers", "balanced", error);
}

/* How many of the dp ranks hold a shard each, by the words of the column: "FSDP=256 per slice, DP over slices", "FSDP 16
 * nodes x 8, DP 2"; all of them otherwise. */
static uint64_t
fsdp_of_row (const PodTrainingRow *row)
{
  const char *per_slice = has_word (row->fsdp, "per slice") ? strstr (row->fsdp, "FSDP=") : NULL;
  const char *replicas = has_word (row->fsdp, ", DP ") ? strstr (row->fsdp, ", DP ") : NULL;
  uint64_t n = 0;

  if (per_slice != NULL)
    n = g_ascii_strtoull (per_slice + strlen ("FSDP="), NULL, 10);
  else if (replicas != NULL)
    {
      n = g_ascii_strtoull (replicas + strlen (", DP "), NULL, 10);
      n = n > 0 && row->dp % n == 0 ? row->dp / n : 0;
    }
  return n > 0 && row->dp % n == 0 ? n : row->dp;
}

static void
add_degree (GString *layout, const char *axis, uint64_t degree)
{
  if (degree > 1)
    g_string_append_printf (layout, "%s%s=%" G_GUINT64_FORMAT, layout->len > 0 ? " " : "", axis,
                            degree);
}

static bool
set_layout (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const bool is_fsdp = g_strcmp0 (row->zero_stage, "3") == 0;
  const uint64_t fsdp = is_fsdp ? fsdp_of_row (row) : 1;
  g_autoptr (GString) layout = g_string_new (NULL);

  if (row->tp == 0 || row->pp == 0 || row->dp == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "not stated: tp, pp or dp");
      return false;
    }
  add_degree (layout, "dp", row->dp / fsdp);
  add_degree (layout, "fsdp", fsdp);
  add_degree (layout, "tp", row->tp);
  add_degree (layout, "cp", row->cp);
  add_degree (layout, "pp", row->pp);
  add_degree (layout, "vpp", vpp_of_row (row));
  add_degree (layout, "ep", row->ep);
  if (layout->len == 0)
    g_string_append (layout, "dp=1");
  /* ZeRO-3 of one data rank still shards over cp */
  if ((!is_fsdp || (fsdp == 1 && row->cp > 1)) && row->zero_stage != NULL
      && !pod_scenario_set (scenario, "zero", row->zero_stage, error))
    return false;
  return pod_scenario_set (scenario, "layout", layout->str, error)
         && set_stages (scenario, row, error);
}

/* ---- batch, precision, what overlaps ---- */

static bool
set_batch (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const PodTrainingFramework *framework = pod_training_framework (row);
  uint64_t micro_batch = row->micro_batch;

  if (row->seq_len == 0 || row->global_batch == 0 || micro_batch == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "not stated: seq_len, global_batch or micro_batch");
      return false;
    }
  if (framework->splits_by_pp && row->pp > 1 && micro_batch % row->pp == 0)
    micro_batch /= row->pp;
  return set (scenario, "seq-len", error, "%" G_GUINT64_FORMAT, row->seq_len)
         && set (scenario, "global-batch", error, "%" G_GUINT64_FORMAT, row->global_batch)
         && set (scenario, "micro-batch", error, "%" G_GUINT64_FORMAT, micro_batch);
}

/* "NAME=VALUE" */
static bool
set_pair (PodScenario *scenario, const char *text, GError **error)
{
  g_auto (GStrv) pair = g_strsplit (text, "=", 2);

  return pod_scenario_set (scenario, pair[0], pair[1], error);
}

/* What is computed again: the kind, by the framework's own word for selective; "full recompute of 5 layers per stage" is a block of each
 * part of the pipeline. */
static bool
set_recompute (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  static const char blocks[] = "full recompute of ";
  const char *selective = pod_training_framework (row)->selective;
  const char *mark = has_word (row->recompute, blocks) ? strstr (row->recompute, blocks) + strlen (blocks) : NULL;
  char *end = NULL;
  const uint64_t n_layers = mark != NULL ? g_ascii_strtoull (mark, &end, 10) : 0;

  if (n_layers > 0 && g_str_has_prefix (end, " layers per stage"))
    return set (scenario, "recompute", error, "block:%" G_GUINT64_FORMAT, n_layers);
  return pod_scenario_set (scenario, "recompute", selective != NULL && strcmp (row->recompute_kind, "selective") == 0 ? selective : row->recompute_kind, error);
}

/* The framework's precisions, the row's words after them. Without either gradients are kept as the matmuls' dtype. */
static bool
set_precision (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const PodTrainingFramework *framework = pod_training_framework (row);

  if (row->dtype_kind == NULL || row->recompute_kind == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "not stated: dtype or recompute");
      return false;
    }
  if (strcmp (row->dtype_kind, "fp16") == 0
      && !pod_scenario_set (scenario, "grad-dtype", "fp16", error))
    return false;
  for (size_t i = 0; i < G_N_ELEMENTS (framework->options) && framework->options[i] != NULL; i++)
    if (!set_pair (scenario, framework->options[i], error))
      return false;
  return (!has_word (row->dtype, "fp32 grad")
          || pod_scenario_set (scenario, "grad-dtype", "fp32", error))
         && pod_scenario_set (scenario, "dtype", row->dtype_kind, error)
         && set_recompute (scenario, row, error)
         && (framework->fused_loss_year == 0 || row->year < framework->fused_loss_year || pod_scenario_set (scenario, "cross-entropy", "fused", error));
}

static bool
set_overlap (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const PodTrainingFramework *framework = pod_training_framework (row);
  const bool is_refused = has_word (row->recompute, "no sequence parallel");
  const bool is_said = has_word (row->recompute, "sequence parallel") && !is_refused;
  const bool is_sequence_parallel = is_said || (framework->is_sequence_parallel && !is_refused);
  const bool is_tp_overlapped = framework->is_tp_overlapped || has_word (row->note, "async TP");

  return set_flag (scenario, "sequence-parallel", is_sequence_parallel, error)
         && set_flag (scenario, "overlap-dp", framework->is_dp_overlapped, error)
         && (row->tp == 1 || !is_sequence_parallel
             || set_flag (scenario, "overlap-tp", is_tp_overlapped, error));
}

/* A CUDA graph of the whole step, or of each layer but for its experts (Megatron-Core: transformer_engine, local); one of the whole step
 * has experts whose sizes the host never learns, by TransformerEngine's fused operations. */
static bool
set_graphs (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const bool is_whole = has_word (row->note, "cuda_graph_impl=full_iteration");
  const bool is_layered = has_word (row->note, "cuda_graph_impl=transformer_engine") || has_word (row->note, "cuda_graph_impl=local");

  if (is_whole)
    return pod_scenario_set (scenario, "set", "framework.cuda_graphs=step", error) && pod_scenario_set (scenario, "expert-ops", "fused", error);
  return !is_layered || pod_scenario_set (scenario, "set", "framework.cuda_graphs=layers", error);
}

/* DeepEP and HybridEP send a token once to each rank, over its node, that has experts of it, however many those are. */
static bool
set_experts (PodScenario *scenario, const PodTrainingRow *row, GError **error)
{
  const PodTrainingMachine *machine = pod_training_machine (row);
  const uint64_t domain = machine->domain;
  const uint64_t n_nodes = domain > 0 ? (row->ep + domain - 1) / domain : 1;

  if (has_word (row->note, "moe_a2a_overlap=True") && !set_flag (scenario, "overlap-ep", true, error))
    return false;
  if (row->n_experts == 0 || row->ep < 2 || (!has_word (row->note, "=deepep") && !has_word (row->note, "=hybridep")))
    return true;
  return set (scenario, "route-nodes", error, "%" G_GUINT64_FORMAT, n_nodes);
}

PodScenario *
pod_training_scenario (const PodTrainingRow *row, GError **error)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  const PodTrainingConvention *convention = pod_training_convention (row);

  if (!(row->step_time_s > 0) || row->n_chips == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "not stated: step_time_s or n_chips");
      return NULL;
    }
  if (!set_machine (scenario, row, error) || !set_batch (scenario, row, error)
      || !set_model (scenario, row, error) || !set_layout (scenario, row, error)
      || !set_precision (scenario, row, error) || !set_overlap (scenario, row, error)
      || !set_experts (scenario, row, error) || !set_graphs (scenario, row, error)
      || (convention != NULL
          && !pod_scenario_set (scenario, "flops-convention", convention->ours, error)))
    return NULL;
  return g_steal_pointer (&scenario);
}
