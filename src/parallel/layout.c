#include "parallel/layout.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

static const char *const axis_names[POD_N_COMM_AXES] = {
  [POD_AXIS_DP] = "dp", [POD_AXIS_FSDP] = "fsdp", [POD_AXIS_TP] = "tp", [POD_AXIS_CP] = "cp", [POD_AXIS_PP] = "pp", [POD_AXIS_EP] = "ep",
  [POD_AXIS_HOST] = "host",
};

const char *const pod_cp_kind_names[POD_N_CP_KINDS + 1] = {
  [POD_CP_RING] = "ring",
  [POD_CP_ALLGATHER] = "allgather",
  [POD_CP_ULYSSES] = "ulysses",
};

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

bool
pod_layout_is_sharded (const PodLayout *layout)
{
  return layout->degree[POD_AXIS_FSDP] > 1 || layout->is_zero_3;
}

static unsigned
axes_above_1 (const PodLayout *layout, unsigned axes)
{
  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (layout->degree[a] == 1)
      axes &= ~POD_MASK (a);
  return axes;
}

uint32_t
pod_layout_n_shards (const PodLayout *layout)
{
  return pod_layout_is_sharded (layout) ? layout->degree[POD_AXIS_FSDP] * layout->degree[POD_AXIS_CP] : 1;
}

unsigned
pod_layout_shard_axes (const PodLayout *layout)
{
  return pod_layout_is_sharded (layout) ? axes_above_1 (layout, POD_MASK (POD_AXIS_FSDP) | POD_MASK (POD_AXIS_CP)) : 0;
}

uint32_t
pod_layout_n_replicas (const PodLayout *layout)
{
  return layout->degree[POD_AXIS_DP] * (pod_layout_is_sharded (layout) ? 1 : layout->degree[POD_AXIS_CP]);
}

unsigned
pod_layout_replica_axes (const PodLayout *layout)
{
  return axes_above_1 (layout, POD_MASK (POD_AXIS_DP) | (pod_layout_is_sharded (layout) ? 0 : POD_MASK (POD_AXIS_CP)));
}

uint32_t
pod_layout_degree (const PodLayout *layout, PodAxis axis)
{
  if (axis == POD_AXIS_EP)
    return layout->ep * layout->etp;
  return axis < POD_N_AXES ? layout->degree[axis] : 1;
}

uint32_t
pod_layout_stage_size (const PodLayout *layout)
{
  return pod_layout_n_ranks (layout) / layout->degree[POD_AXIS_PP];
}

static uint32_t
gcd (uint32_t a, uint32_t b)
{
  return b == 0 ? a : gcd (b, a % b);
}

/* fsdp shards experts as far as what ep x etp leaves of tp x cp x fsdp goes into their copies; without fsdp all are replicas. */
void
pod_layout_expert_grid (const PodLayout *layout, uint32_t out[POD_N_EXPERT_AXES])
{
  const uint32_t inner = pod_layout_stage_size (layout) / layout->degree[POD_AXIS_DP];
  const uint32_t block = MAX (layout->ep * layout->etp, 1);
  const uint32_t n_copies = MAX (pod_layout_stage_size (layout) / block, 1);

  out[POD_EXPERT_ETP] = layout->etp;
  out[POD_EXPERT_EP] = layout->ep;
  out[POD_EXPERT_FSDP] = pod_layout_is_sharded (layout) ? gcd (n_copies, inner / gcd (inner, block)) : 1;
  out[POD_EXPERT_DP] = n_copies / out[POD_EXPERT_FSDP];
}

uint64_t
pod_layout_dense_ffn (const PodModel *model, const PodLayerKind *kind)
{
  return kind->ffn + (kind->is_moe ? model->shared_ffn : 0);
}

char *
pod_layout_to_text (const PodLayout *layout)
{
  GString *text = g_string_new (NULL);

  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (layout->degree[a] > 1)
      g_string_append_printf (text, "%s%s=%u", text->len > 0 ? " " : "", axis_names[a], layout->degree[a]);
  if (layout->vpp > 1)
    g_string_append_printf (text, " vpp=%u", layout->vpp);
  if (text->len == 0)
    g_string_append (text, "dp=1");
  if (layout->ep > 1)
    g_string_append_printf (text, " ep=%u", layout->ep);
  if (layout->etp > 1)
    g_string_append_printf (text, " etp=%u", layout->etp);
  return g_string_free (text, FALSE);
}

/* A degree that is no factor of the devices, by its name. */
static uint32_t *
other_degree (PodLayout *layout, const char *name)
{
  if (strcmp (name, "vpp") == 0)
    return &layout->vpp;
  if (strcmp (name, "ep") == 0)
    return &layout->ep;
  return strcmp (name, "etp") == 0 ? &layout->etp : NULL;
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
      uint32_t *other;

      if (words[i][0] == '\0')
        continue;
      pair = g_strsplit (words[i], "=", 2);
      if (g_strv_length (pair) != 2)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: '%s' is not AXIS=DEGREE, as in \"fsdp=64 tp=8\"", words[i]);
          return false;
        }
      other = other_degree (&layout, pair[0]);
      if (other == NULL && !pod_axis_parse (pair[0], &axis))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: unknown axis '%s'; known are dp, fsdp, tp, cp, pp, ep, etp, vpp", pair[0]);
          return false;
        }
      if (other != NULL ? *other != 0 : is_given[axis])
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: %s stands twice", pair[0]);
          return false;
        }
      is_given[axis] |= other == NULL;
      if (strcmp (pair[1], "auto") == 0 && other == NULL)
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
      *(other != NULL ? other : &layout.degree[axis]) = (uint32_t) degree;
    }
  layout.vpp = MAX (layout.vpp, 1);
  layout.ep = MAX (layout.ep, 1);
  layout.etp = MAX (layout.etp, 1);
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

/* KV heads over @ranks, or the other way round. */
static bool
check_kv_heads (const PodLayerKind *kind, const char *by, uint64_t ranks, GError **error)
{
  return kind->kv_heads % ranks == 0 || ranks % kind->kv_heads == 0 || refuse (error, "layout", "KV head count", kind->kv_heads, by, ranks);
}

/* Heads over tp, and with Ulysses what tp leaves over cp. KV heads are replicated where there are fewer. @notes (nullable) */
static bool
check_heads (const PodLayout *layout, const PodLayerKind *kind, GPtrArray *notes, GError **error)
{
  const bool is_ulysses = layout->cp_kind == POD_CP_ULYSSES && layout->degree[POD_AXIS_CP] > 1;
  const uint64_t tp = layout->degree[POD_AXIS_TP];
  const uint64_t ranks = tp * (is_ulysses ? layout->degree[POD_AXIS_CP] : 1);

  if (kind->heads % ranks != 0)
    return refuse (error, "layout", "query head count", kind->heads, is_ulysses ? "tp x cp" : "tp", ranks);
  if (!check_kv_heads (kind, "tp", tp, error) || (is_ulysses && !check_kv_heads (kind, "tp x cp", ranks, error)))
    return false;
  if (notes != NULL && kind->kv_heads < tp)
    g_ptr_array_add (notes, g_strdup_printf ("tp=%u is larger than the %u KV heads: each is replicated on %u tensor ranks", (unsigned) tp,
                                             (unsigned) kind->kv_heads, (unsigned) (tp / kind->kv_heads)));
  else if (notes != NULL && kind->kv_heads < ranks)
    g_ptr_array_add (notes, g_strdup_printf ("tp x cp = %u ranks are more than the %u KV heads: attention has each on %u of them", (unsigned) ranks,
                                             (unsigned) kind->kv_heads, (unsigned) (ranks / kind->kv_heads)));
  return true;
}

/* Tokens of a sequence over cp, in two chunks a rank where causal work is balanced, and over tp with sequence parallelism. */
static bool
check_sequence (const PodLayout *layout, const PodModel *model, const PodBatch *batch, GError **error)
{
  const uint64_t cp = layout->degree[POD_AXIS_CP];
  const uint64_t tp = layout->is_sequence_parallel ? layout->degree[POD_AXIS_TP] : 1;
  const bool is_zigzag = layout->is_zigzag && cp > 1;
  const uint64_t divisor = cp * tp * (is_zigzag ? 2 : 1);

  if (cp > 1 && model->attention == POD_ATTENTION_NONE)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: cp=%" G_GUINT64_FORMAT " shards attention, and %s has none: use fsdp or dp", cp, model->name);
      return false;
    }
  if (batch->seq_len % divisor == 0)
    return true;
  if (cp == 1)
    return refuse (error, "layout", "sequence length", batch->seq_len, "tp", tp);
  if (tp == 1)
    return refuse (error, "layout", "sequence length", batch->seq_len, is_zigzag ? "2 x cp (two chunks a rank balance causal work)" : "cp", divisor);
  return refuse (error, "layout", "sequence length", batch->seq_len, is_zigzag ? "2 x cp x tp (two chunks a rank balance causal work)" : "cp x tp", divisor);
}

static bool
has_experts (const PodModel *model)
{
  for (unsigned i = 0; i < model->n_kinds; i++)
    if (model->kinds[i].is_moe)
      return true;
  return false;
}

/* The experts' grid: what it divides, and what it needs of the rest of the layout. */
static bool
check_experts (const PodLayout *layout, const PodModel *model, GPtrArray *notes, GError **error)
{
  const uint64_t block = (uint64_t) layout->ep * layout->etp;
  uint32_t grid[POD_N_EXPERT_AXES];

  if (!has_experts (model))
    {
      if (block == 1)
        return true;
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--layout: ep=%u etp=%u: %s has no experts", layout->ep, layout->etp, model->name);
      return false;
    }
  if (model->n_experts % layout->ep != 0)
    return refuse (error, "layout", "expert count", model->n_experts, "ep", layout->ep);
  if (model->moe_ffn % layout->etp != 0)
    return refuse (error, "layout", "width of an expert", model->moe_ffn, "etp", layout->etp);
  if (pod_layout_stage_size (layout) % block != 0)
    return refuse (error, "layout", "devices of a stage (tp x cp x dp x fsdp)", pod_layout_stage_size (layout), "ep x etp", block);
  if (layout->degree[POD_AXIS_TP] > 1 && !layout->is_sequence_parallel)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--no-sequence-parallel: with tp=%u all tensor ranks would route the same tokens to the experts of %s",
                   layout->degree[POD_AXIS_TP], model->name);
      return false;
    }
  if (model->is_parallel_block)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--model: %s: experts beside attention in a parallel block are not modelled", model->name);
      return false;
    }
  pod_layout_expert_grid (layout, grid);
  g_ptr_array_add (notes, g_strdup_printf ("experts: %" G_GUINT64_FORMAT " of a layer on ep=%u, %" G_GUINT64_FORMAT " a rank, etp=%u; %u copies of each, sharded over %u of them", model->n_experts,
                                           layout->ep, model->n_experts / layout->ep, layout->etp, grid[POD_EXPERT_FSDP] * grid[POD_EXPERT_DP], grid[POD_EXPERT_FSDP]));
  return true;
}

static bool
check_model (const PodLayout *layout, const PodModel *model, const PodBatch *batch, GPtrArray *notes, GError **error)
{
  const uint64_t tp = layout->degree[POD_AXIS_TP];

  for (unsigned i = 0; i < model->n_kinds; i++)
    {
      const PodLayerKind *kind = &model->kinds[i];

      if (model->attention != POD_ATTENTION_NONE && !check_heads (layout, kind, i == 0 ? notes : NULL, error))
        return false;
      if (pod_layout_dense_ffn (model, kind) % tp != 0)
        return refuse (error, "layout", "FFN width", pod_layout_dense_ffn (model, kind), "tp", tp);
    }
  if (model->n_mtp > 0 && model->hidden % tp != 0)
    return refuse (error, "layout", "hidden size, which multi-token prediction projects to,", model->hidden, "tp", tp);
  return check_sequence (layout, model, batch, error);
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
  if (n_microbatches > POD_MAX_SLOTS / layout->degree[POD_AXIS_PP] / layout->vpp)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "--global-batch: %" G_GUINT64_FORMAT " microbatches on each of %u stages are more than the %u in all that one step can have: take a larger micro-batch",
                   n_microbatches, layout->degree[POD_AXIS_PP], POD_MAX_SLOTS);
      return false;
    }
  return true;
}

/* FLOPs of layers up to each, and of the head, in those of a token's forward pass. */
static double *
costs_of_layers (const PodModel *model, uint64_t seq_len)
{
  double *until = g_new0 (double, model->n_layers + 1);

  for (uint64_t l = 0; l < model->n_layers; l++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[l]];
      uint64_t active;

      pod_model_layer_params (model, model->layer_kind[l], &active);
      until[l + 1] = until[l] + 2 * (double) active;
      if (model->attention != POD_ATTENTION_NONE)
        until[l + 1] += 2 * pod_model_mean_span (kind, seq_len) * (double) (kind->heads * (kind->head_dim + kind->v_head_dim));
    }
  return until;
}

/* Deals layers so that the sum of the squares of the parts' costs is least: the costliest part is then as cheap as it can be, and the
 * others are alike. The head counts to the last part; the embedding's lookup costs nothing. O(parts x layers x layers of a part). */
static void
balance (const PodModel *model, uint64_t seq_len, uint32_t n_parts, uint32_t *out)
{
  const uint64_t n = model->n_layers;
  const double head = 2 * (double) model->hidden * (double) model->vocab;
  const uint64_t most = MIN (n, 2 * (n / n_parts) + 8); /* of a part */
  g_autofree double *until = costs_of_layers (model, seq_len);
  g_autofree double *best = g_new (double, n + 1);
  g_autofree double *next = g_new (double, n + 1);
  g_autofree uint32_t *choice = g_new0 (uint32_t, (size_t) n_parts * (n + 1));

  for (uint64_t l = 0; l <= n; l++)
    best[l] = l == 0 ? 0 : INFINITY;
  for (uint32_t part = 0; part < n_parts; part++)
    {
      for (uint64_t l = 0; l <= n; l++)
        {
          next[l] = INFINITY;
          for (uint64_t k = 0; k <= MIN (l, most); k++)
            {
              double cost = until[l] - until[l - k] + (part == n_parts - 1 ? head : 0);

              if (best[l - k] + cost * cost < next[l])
                {
                  next[l] = best[l - k] + cost * cost;
                  choice[part * (n + 1) + l] = (uint32_t) k;
                }
            }
        }
      memcpy (best, next, (n + 1) * sizeof *best);
    }
  for (uint64_t part = n_parts, l = n; part-- > 0; l -= out[part])
    out[part] = choice[part * (n + 1) + l];
}

static bool
place_given (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t n_parts, uint32_t *out, GError **error)
{
  const uint32_t n_virtual = n_parts / layout->degree[POD_AXIS_PP];
  g_autofree char *parts = n_virtual > 1 ? g_strdup_printf (" of %u parts each", n_virtual) : g_strdup ("");
  uint64_t sum = 0;

  for (unsigned i = 0; i < batch->n_stage_layers; i++)
    sum += batch->stage_layers[i];
  if (batch->n_stage_layers == n_parts && sum == model->n_layers)
    {
      memcpy (out, batch->stage_layers, n_parts * sizeof *out);
      return true;
    }
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
               "--stage-layers: %u counts that sum to %" G_GUINT64_FORMAT ", but pp=%u stages%s and %" G_GUINT64_FORMAT " layers are to be filled",
               batch->n_stage_layers, sum, layout->degree[POD_AXIS_PP], parts, model->n_layers);
  return false;
}

uint32_t *
pod_layout_place (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t n_parts, GError **error)
{
  const char *parts = n_parts == layout->degree[POD_AXIS_PP] ? "pp" : "pp x virtual stages";
  const uint64_t extra = batch->is_embed_head_as_layers ? 2 : 0;
  const uint64_t total = model->n_layers + extra;
  g_autofree uint32_t *out = g_new0 (uint32_t, n_parts);

  if (batch->stage_layers != NULL)
    return place_given (layout, model, batch, n_parts, out, error) ? g_steal_pointer (&out) : NULL;
  if (batch->is_balanced)
    {
      balance (model, batch->seq_len, n_parts, out);
      return g_steal_pointer (&out);
    }
  if (total % n_parts != 0)
    {
      if (extra > 0)
        refuse (error, "layout", "layer count + 2 (embedding and head)", total, parts, n_parts);
      else
        refuse (error, "stage-layers", "without it and --embed-head-as-layers the layer count", total, parts, n_parts);
      return NULL;
    }
  for (uint32_t i = 0; i < n_parts; i++)
    out[i] = (uint32_t) (total / n_parts);
  if (extra > 0)
    {
      out[0]--;
      out[n_parts - 1]--;
    }
  return g_steal_pointer (&out);
}

bool
pod_layout_check (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t n_devices, bool allow_idle,
                  GPtrArray *notes, GError **error)
{
  const uint32_t used = pod_layout_n_ranks (layout);
  g_autofree char *text = pod_layout_to_text (layout);

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
  return check_model (layout, model, batch, notes, error) && check_experts (layout, model, notes, error) && check_batch (layout, batch, error);
}
