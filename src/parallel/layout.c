#include "parallel/layout.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

static const char *const axis_names[POD_N_AXES] = {
  [POD_AXIS_DP] = "dp", [POD_AXIS_FSDP] = "fsdp", [POD_AXIS_TP] = "tp", [POD_AXIS_CP] = "cp", [POD_AXIS_PP] = "pp",
};

/* Degrees that the command line names and that this program does not model yet beyond 1. */
static const char *const unsupported_axes[] = { "ep", "etp", "vpp" };

const char *
pod_axis_name (PodAxis axis)
{
  return axis_names[axis];
}

bool
pod_axis_parse (const char *text, PodAxis *out)
{
  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (strcmp (text, axis_names[a]) == 0)
      {
        *out = a;
        return true;
      }
  return false;
}

uint32_t
pod_layout_n_ranks (const PodLayout *layout)
{
  uint64_t n = 1;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    {
      n *= layout->degree[a];
      if (n > UINT32_MAX)
        return UINT32_MAX;
    }
  return (uint32_t) n;
}

char *
pod_layout_to_text (const PodLayout *layout)
{
  GString *text = g_string_new (NULL);

  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (layout->degree[a] > 1)
      g_string_append_printf (text, "%s%s=%u", text->len > 0 ? " " : "", axis_names[a], layout->degree[a]);
  if (text->len == 0)
    g_string_append (text, "dp=1");
  return g_string_free (text, FALSE);
}

static bool
is_unsupported (const char *name)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (unsupported_axes); i++)
    if (strcmp (name, unsupported_axes[i]) == 0)
      return true;
  return false;
}

bool
pod_layout_parse (const char *text, uint32_t n_devices, PodLayout *out, GError **error)
{
  g_auto (GStrv) words = g_strsplit_set (text, " \t\n", -1);
  PodLayout layout = { .is_sequence_parallel = true };
  bool is_given[POD_N_AXES] = { false };
  int auto_axis = -1;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    layout.degree[a] = 1;
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      g_auto (GStrv) pair = NULL;
      uint64_t degree;
      PodAxis axis = POD_AXIS_DP;

      if (words[i][0] == '\0')
        continue;
      pair = g_strsplit (words[i], "=", 2);
      if (g_strv_length (pair) != 2)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: '%s' is not AXIS=DEGREE, as in \"fsdp=64 tp=8\"", words[i]);
          return false;
        }
      if (!pod_axis_parse (pair[0], &axis) && !is_unsupported (pair[0]))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: unknown axis '%s'; known are dp, fsdp, tp, cp, pp, ep, etp, vpp", pair[0]);
          return false;
        }
      if (!is_unsupported (pair[0]))
        {
          if (is_given[axis])
            {
              g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: %s stands twice", pair[0]);
              return false;
            }
          is_given[axis] = true;
        }
      if (strcmp (pair[1], "auto") == 0 && !is_unsupported (pair[0]))
        {
          if (auto_axis >= 0)
            {
              g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: only one degree may be auto, '%s' is the second", words[i]);
              return false;
            }
          auto_axis = (int) axis;
          continue;
        }
      if (!pod_parse_whole (pair[1], POD_UNIT_COUNT, &degree, error))
        {
          g_prefix_error (error, "--layout: %s: ", pair[0]);
          return false;
        }
      if (degree < 1 || degree > UINT32_MAX)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: %s=%s must be at least 1 and below 2^32", pair[0], pair[1]);
          return false;
        }
      if (is_unsupported (pair[0]))
        {
          if (degree == 1)
            continue;
          g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--layout: %s=%s: only %s=1 is modelled", pair[0], pair[1], pair[0]);
          return false;
        }
      layout.degree[axis] = (uint32_t) degree;
    }
  if (layout.degree[POD_AXIS_CP] > 1)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--layout: cp=%u: only cp=1 is modelled", layout.degree[POD_AXIS_CP]);
      return false;
    }
  if (auto_axis >= 0)
    {
      uint32_t used = pod_layout_n_ranks (&layout);

      if (n_devices % used != 0 || n_devices < used)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--layout: %s=auto: %u devices / %u already used does not divide",
                       axis_names[auto_axis], n_devices, used);
          return false;
        }
      layout.degree[auto_axis] = n_devices / used;
    }
  *out = layout;
  return true;
}

/* The largest divisor of @value up to @limit. O(sqrt (value)), and no more than @limit. */
static uint64_t
divisor_below (uint64_t value, uint64_t limit)
{
  uint64_t best = 1;

  for (uint64_t d = 1; d <= limit && d <= value / d; d++)
    if (value % d == 0)
      best = MAX (best, value / d <= limit ? value / d : d);
  return best;
}

static bool
refuse (GError **error, const char *option, const char *what, uint64_t value, const char *by, uint64_t divisor)
{
  uint64_t below = value / divisor * divisor;
  uint64_t best = divisor_below (value, divisor);

  if (below > 0)
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                 "--%s: %s (%" G_GUINT64_FORMAT ") is not a multiple of %s (%" G_GUINT64_FORMAT "): %" G_GUINT64_FORMAT " %% %" G_GUINT64_FORMAT " = %" G_GUINT64_FORMAT
                 "; nearest: %" G_GUINT64_FORMAT " or %" G_GUINT64_FORMAT "; nearest divisor below: %" G_GUINT64_FORMAT,
                 option, what, value, by, divisor, value, divisor, value % divisor, below, below + divisor, best);
  else
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                 "--%s: %s (%" G_GUINT64_FORMAT ") is not a multiple of %s (%" G_GUINT64_FORMAT "): %" G_GUINT64_FORMAT " %% %" G_GUINT64_FORMAT " = %" G_GUINT64_FORMAT
                 "; nearest: %" G_GUINT64_FORMAT "; nearest divisor below: %" G_GUINT64_FORMAT,
                 option, what, value, by, divisor, value, divisor, value % divisor, divisor, best);
  return false;
}

static bool
check_model (const PodLayout *layout, const PodModel *model, const PodBatch *batch, GPtrArray *notes, GError **error)
{
  const uint64_t tp = layout->degree[POD_AXIS_TP];

  for (unsigned i = 0; i < model->n_kinds; i++)
    {
      const PodLayerKind *kind = &model->kinds[i];

      if (kind->is_moe)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                       "--model: %s has mixture-of-experts layers, whose training step is not modelled: choose a dense model", model->name);
          return false;
        }
      if (model->attention == POD_ATTENTION_GQA && kind->heads % tp != 0)
        return refuse (error, "layout", "query head count", kind->heads, "tp", tp);
      if (model->attention == POD_ATTENTION_GQA && kind->kv_heads % tp != 0)
        {
          if (tp % kind->kv_heads != 0)
            return refuse (error, "layout", "KV head count", kind->kv_heads, "tp", tp);
          if (i == 0)
            g_ptr_array_add (notes, g_strdup_printf ("tp=%u is larger than the %u KV heads: each is replicated on %u tensor ranks", (unsigned) tp,
                                                     (unsigned) kind->kv_heads, (unsigned) (tp / kind->kv_heads)));
        }
      if (kind->ffn % tp != 0)
        return refuse (error, "layout", "FFN width", kind->ffn, "tp", tp);
    }
  if (layout->is_sequence_parallel && tp > 1 && batch->seq_len % tp != 0)
    return refuse (error, "layout", "sequence length", batch->seq_len, "tp", tp);
  return true;
}

static bool
check_batch (const PodLayout *layout, const PodBatch *batch, GError **error)
{
  const uint64_t data = (uint64_t) layout->degree[POD_AXIS_DP] * layout->degree[POD_AXIS_FSDP];
  uint64_t n_microbatches;
  uint64_t divisor;

  if (batch->global_batch == 0 || batch->micro_batch == 0 || batch->seq_len == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--global-batch: global batch, micro-batch and sequence length must be at least 1");
      return false;
    }
  if ((double) batch->global_batch * (double) batch->seq_len > POD_MAX_STEP_TOKENS || !g_uint64_checked_mul (&divisor, data, batch->micro_batch))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "--global-batch: %" G_GUINT64_FORMAT " sequences of %" G_GUINT64_FORMAT " in micro-batches of %" G_GUINT64_FORMAT ": a step has at most %.0g tokens",
                   batch->global_batch, batch->seq_len, batch->micro_batch, POD_MAX_STEP_TOKENS);
      return false;
    }
  if (batch->global_batch % divisor != 0)
    return refuse (error, "global-batch", "global batch", batch->global_batch, "dp x fsdp x micro-batch", divisor);
  n_microbatches = batch->global_batch / divisor;
  if (n_microbatches > POD_MAX_SLOTS / layout->degree[POD_AXIS_PP])
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "--global-batch: %" G_GUINT64_FORMAT " microbatches on each of %u stages are more than the %u in all that one step can have: take a larger micro-batch",
                   n_microbatches, layout->degree[POD_AXIS_PP], POD_MAX_SLOTS);
      return false;
    }
  return true;
}

/* The layers of each stage: as given, or equal; with embedding and head as layers the first and last stage get one fewer. */
static bool
place_layers (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t *out, GError **error)
{
  const uint32_t pp = layout->degree[POD_AXIS_PP];
  uint64_t sum = 0;

  if (batch->stage_layers != NULL)
    {
      for (unsigned i = 0; i < batch->n_stage_layers; i++)
        sum += batch->stage_layers[i];
      if (batch->n_stage_layers != pp || sum != model->n_layers)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                       "--stage-layers: %u counts that sum to %" G_GUINT64_FORMAT ", but pp=%u stages and %" G_GUINT64_FORMAT " layers are to be filled",
                       batch->n_stage_layers, sum, pp, model->n_layers);
          return false;
        }
      memcpy (out, batch->stage_layers, pp * sizeof *out);
      return true;
    }
  if (batch->is_embed_head_as_layers)
    {
      if ((model->n_layers + 2) % pp != 0)
        return refuse (error, "layout", "layer count + 2 (embedding and head)", model->n_layers + 2, "pp", pp);
      for (uint32_t i = 0; i < pp; i++)
        out[i] = (uint32_t) ((model->n_layers + 2) / pp) - (i == 0) - (i == pp - 1);
      return true;
    }
  if (model->n_layers % pp != 0)
    return refuse (error, "stage-layers", "neither it nor --embed-head-as-layers is given, and the layer count", model->n_layers, "pp", pp);
  for (uint32_t i = 0; i < pp; i++)
    out[i] = (uint32_t) (model->n_layers / pp);
  return true;
}

bool
pod_layout_check (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t n_devices, bool allow_idle,
                  GPtrArray *notes, uint32_t **out_stage_layers, GError **error)
{
  const uint32_t used = pod_layout_n_ranks (layout);
  g_autofree char *text = pod_layout_to_text (layout);
  g_autofree uint32_t *stage_layers = NULL;

  if (used > n_devices)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--layout: %s needs %u devices, the machine has %u", text, used, n_devices);
      return false;
    }
  if (used < n_devices && !allow_idle)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "--layout: %s uses %u of %u devices: %u would idle (set a degree to auto, or say --allow-idle)", text, used, n_devices, n_devices - used);
      return false;
    }
  if (used < n_devices)
    g_ptr_array_add (notes, g_strdup_printf ("%u of %u devices idle, counted in MFU and cost", n_devices - used, n_devices));
  stage_layers = g_new0 (uint32_t, layout->degree[POD_AXIS_PP]);
  if (!check_model (layout, model, batch, notes, error) || !check_batch (layout, batch, error)
      || !place_layers (layout, model, batch, stage_layers, error))
    return false;
  *out_stage_layers = g_steal_pointer (&stage_layers);
  return true;
}
