#include "search/space-private.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

#define MAX_LAYOUTS    (1U << 24)
#define MAX_CANDIDATES UINT64_C (1000000000)

const PodSpaceDefault pod_space_defaults[] = {
  { "micro-batch", "1,2,4,8" },
  { "recompute", "none,selective,full" },
  { "zero", "0,1" },
  { NULL, NULL },
};

static const char *const degree_keys[] = { "dp", "fsdp", "tp", "cp", "pp", "vpp", "ep", "etp", "topology", NULL };

/* Options that belong to the question: with others there is nothing to rank. */
static const char *const fixed_keys[] = { "model",    "workload", "layout", "mesh",   "shard",    "seq-len",  "global-batch", "layers", "hidden",
                                          "heads",    "kv-heads", "head-dim", "ffn",  "vocab",    "mtp",      "document-len", "tokens", "price",
                                          "availability", "strict", "allow-idle", "framework", "fidelity", "network", "packet", "fold", "set",
                                          "flops-convention", NULL };

static void
topology_free (void *topology)
{
  pod_topology_free (topology);
}

void
pod_space_free (PodSpace *space)
{
  if (space == NULL)
    return;
  pod_scenario_free (space->base);
  g_ptr_array_unref (space->machines);
  pod_model_free (space->model);
  pod_grid_free (space->degrees);
  pod_grid_free (space->options);
  g_array_unref (space->layouts);
  g_clear_pointer (&space->least, g_array_unref);
  g_free (space);
}

static const PodOption *
option_named (const char *name)
{
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (strcmp (option->name, name) == 0)
      return option;
  return NULL;
}

static bool
check_key (const char *key, GError **error)
{
  if (g_strv_contains (fixed_keys, key))
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s' is part of the question, not of its answers: podsim sweep varies it", key);
  else if (option_named (key) == NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "unknown key '%s'; known are dp, fsdp, tp, cp, pp, vpp, ep, etp and options of the job", key);
  else
    return true;
  return false;
}

/* Every value is one that the option takes. */
static bool
check_values (const PodScenario *base, const PodGridDim *dim, GError **error)
{
  for (guint i = 0; i < dim->values->len; i++)
    {
      g_autoptr (PodScenario) probe = pod_scenario_copy (base);

      if (!pod_scenario_set (probe, dim->key, g_ptr_array_index (dim->values, i), error))
        return false;
    }
  return true;
}

static bool
take_limits (PodSpace *space, const GPtrArray *limits, GError **error)
{
  for (guint i = 0; limits != NULL && i < limits->len; i++)
    {
      const char *text = g_ptr_array_index ((GPtrArray *) limits, i);
      g_autofree char *key = g_strndup (text, strcspn (text, "="));
      const bool is_degree = g_strv_contains (degree_keys, g_strstrip (key));
      PodGrid *grid = is_degree ? space->degrees : space->options;

      if ((!is_degree && !check_key (key, error)) || !pod_grid_add (grid, text, error) || (!is_degree && !check_values (space->base, pod_grid_find (grid, key), error)))
        {
          g_prefix_error (error, "--space: ");
          return false;
        }
    }
  return true;
}

/* What the base leaves open and the limits do not name. */
static bool
take_defaults (PodSpace *space, GError **error)
{
  for (const PodSpaceDefault *d = pod_space_defaults; d->key != NULL; d++)
    {
      g_autofree char *text = g_strdup_printf ("%s=%s", d->key, d->list);

      if (pod_grid_find (space->options, d->key) == NULL && !pod_scenario_is_set (space->base, option_named (d->key)) && !pod_grid_add (space->options, text, error))
        return false;
    }
  return true;
}

/* The machine of the base, or those that "topology=..." lists. */
static bool
load_machines (PodSpace *space, GError **error)
{
  const PodGridDim *dim = pod_grid_find (space->degrees, "topology");

  for (guint i = 0; i < (dim != NULL ? dim->values->len : 1); i++)
    {
      g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
      g_autoptr (PodScenario) one = pod_scenario_copy (space->base);
      PodTopology *topology;

      if (dim != NULL && !pod_scenario_set (one, "topology", g_ptr_array_index (dim->values, i), error))
        return false;
      topology = pod_scenario_topology (one, notes, error);
      if (topology == NULL)
        return false;
      g_ptr_array_add (space->machines, topology);
    }
  return true;
}

/* -- layouts ---- */

typedef struct
{
  PodSpace *space;
  guint machine;
  uint32_t n_devices;
  GArray *values[POD_N_AXES]; /* uint32_t: degrees that an axis may have */
  GArray *vpp;
  GArray *ep;
  GArray *etp;
} Enumeration;

/* Divisors of @n, ascending. O(sqrt (n)) */
static GArray *
divisors (uint64_t n)
{
  GArray *low = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) high = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  for (uint64_t d = 1; d <= n / d && d <= UINT32_MAX; d++)
    if (n % d == 0)
      {
        const uint32_t small = (uint32_t) d;
        const uint32_t large = (uint32_t) MIN (n / d, UINT32_MAX);

        g_array_append_val (low, small);
        if (large != small)
          g_array_append_val (high, large);
      }
  for (guint i = high->len; i-- > 0;)
    g_array_append_val (low, g_array_index (high, uint32_t, i));
  return low;
}

static GArray *
only_one (void)
{
  const uint32_t one = 1;
  GArray *list = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  return g_array_append_val (list, one);
}

static gint
compare_degrees (gconstpointer a, gconstpointer b)
{
  const uint32_t x = *(const uint32_t *) a;
  const uint32_t y = *(const uint32_t *) b;

  return x < y ? -1 : x > y;
}

/* Values that the limits give a degree, ascending; NULL without an error when they say nothing. */
static GArray *
limited (const PodSpace *space, const char *key, GError **error)
{
  const PodGridDim *dim = pod_grid_find (space->degrees, key);
  g_autoptr (GArray) list = NULL;

  if (dim == NULL)
    return NULL;
  list = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < dim->values->len; i++)
    {
      const char *text = g_ptr_array_index (dim->values, i);
      uint64_t value;
      uint32_t degree;

      if (!pod_parse_whole (text, POD_UNIT_COUNT, &value, error))
        {
          g_prefix_error (error, "--space: %s: ", key);
          return NULL;
        }
      if (value < 1 || value > UINT32_MAX)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--space: %s=%s must be at least 1 and below 2^32", key, text);
          return NULL;
        }
      degree = (uint32_t) value;
      g_array_append_val (list, degree);
    }
  g_array_sort (list, compare_degrees);
  for (guint i = list->len - 1; i > 0; i--)
    if (g_array_index (list, uint32_t, i) == g_array_index (list, uint32_t, i - 1))
      g_array_remove_index (list, i);
  return g_steal_pointer (&list);
}

/* @out: the limits, or @fallback (transfer full). */
static bool
take_values (const PodSpace *space, const char *key, GArray *fallback, GArray **out, GError **error)
{
  g_autoptr (GError) reason = NULL;

  *out = limited (space, key, &reason);
  if (reason != NULL)
    {
      g_array_unref (fallback);
      g_propagate_error (error, g_steal_pointer (&reason));
      return false;
    }
  if (*out == NULL)
    *out = fallback;
  else
    g_array_unref (fallback);
  return true;
}

static void
enumeration_clear (Enumeration *e)
{
  for (unsigned a = 0; a < POD_N_AXES; a++)
    g_clear_pointer (&e->values[a], g_array_unref);
  g_clear_pointer (&e->vpp, g_array_unref);
  g_clear_pointer (&e->ep, g_array_unref);
  g_clear_pointer (&e->etp, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Enumeration, enumeration_clear)

/* What divides the layers, or them with the embedding and the head as one each. Returns: (transfer full) */
static GArray *
chunks_of_layers (uint64_t n_layers)
{
  g_autoptr (GArray) of_all = divisors (n_layers + 2);
  GArray *chunks = divisors (n_layers);

  for (guint i = 0, at = 0; i < of_all->len; i++)
    {
      const uint32_t n = g_array_index (of_all, uint32_t, i);

      while (at < chunks->len && g_array_index (chunks, uint32_t, at) < n)
        at++;
      if (at == chunks->len || g_array_index (chunks, uint32_t, at) != n)
        g_array_insert_val (chunks, at, n);
    }
  return chunks;
}

/* Every degree that divides the devices; context only where there is attention, stages only where there are layers for them. */
static bool
set_degrees (Enumeration *e, GError **error)
{
  const PodModel *model = e->space->model;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    {
      const bool is_alone = a == POD_AXIS_CP && model->attention == POD_ATTENTION_NONE;
      GArray *fallback = is_alone ? only_one () : divisors (e->n_devices);

      while (a == POD_AXIS_PP && g_array_index (fallback, uint32_t, fallback->len - 1) > model->n_layers)
        g_array_set_size (fallback, fallback->len - 1);
      if (!take_values (e->space, pod_axis_name (a), fallback, &e->values[a], error))
        return false;
    }
  return take_values (e->space, "vpp", chunks_of_layers (model->n_layers), &e->vpp, error)
         && take_values (e->space, "ep", model->n_experts > 0 ? divisors (model->n_experts) : only_one (), &e->ep, error)
         && take_values (e->space, "etp", only_one (), &e->etp, error);
}

static bool
add_layout (Enumeration *e, const PodLayout *layout, GError **error)
{
  const PodSpaceLayout entry = { .machine = e->machine, .layout = *layout };

  if (e->space->layouts->len == MAX_LAYOUTS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "--space: over %u layouts: limit the degrees, such as --space tp=1,2,4,8", MAX_LAYOUTS);
      return false;
    }
  g_array_append_val (e->space->layouts, entry);
  return true;
}

/* The grids of experts over a stage, the innermost choice. */
static bool
add_experts (Enumeration *e, PodLayout layout, GError **error)
{
  const uint32_t stage = pod_layout_stage_size (&layout);

  for (guint i = 0; i < e->ep->len; i++)
    for (guint j = 0; j < e->etp->len; j++)
      {
        layout.ep = g_array_index (e->ep, uint32_t, i);
        layout.etp = g_array_index (e->etp, uint32_t, j);
        if ((uint64_t) layout.ep * layout.etp <= stage && stage % (layout.ep * layout.etp) == 0 && !add_layout (e, &layout, error))
          return false;
      }
  return true;
}

/* Virtual stages are for pipelines, and each has a layer. */
static bool
add_stages (Enumeration *e, PodLayout layout, GError **error)
{
  const uint32_t pp = layout.degree[POD_AXIS_PP];

  for (guint i = 0; i < e->vpp->len; i++)
    {
      const uint32_t vpp = g_array_index (e->vpp, uint32_t, i);

      if ((vpp > 1 && pp == 1) || (uint64_t) vpp * pp > e->space->model->n_layers + 2)
        continue;
      layout.vpp = vpp;
      if (!add_experts (e, layout, error))
        return false;
    }
  return true;
}

/* Axes in the order pp, tp, cp, fsdp, dp: what is left of the devices goes on. */
static bool
add_axes (Enumeration *e, PodLayout layout, unsigned depth, uint32_t left, GError **error)
{
  static const PodAxis order[POD_N_AXES] = { POD_AXIS_PP, POD_AXIS_TP, POD_AXIS_CP, POD_AXIS_FSDP, POD_AXIS_DP };
  const bool may_idle = e->space->base->allow_idle == 1;

  if (depth == POD_N_AXES)
    return left > 1 && !may_idle ? true : add_stages (e, layout, error);
  for (guint i = 0; i < e->values[order[depth]]->len; i++)
    {
      const uint32_t degree = g_array_index (e->values[order[depth]], uint32_t, i);

      if (degree > left || (left % degree != 0 && !may_idle))
        continue;
      layout.degree[order[depth]] = degree;
      if (!add_axes (e, layout, depth + 1, left / degree, error))
        return false;
    }
  return true;
}

/* Why no layout of @n_devices is in the space: a degree none of whose values divides them, or all that are limited. */
static void
refuse_empty (const PodSpace *space, uint32_t n_devices, GError **error)
{
  g_autoptr (GString) said = g_string_new (NULL);
  g_autoptr (GArray) all = divisors (n_devices);
  g_autoptr (GString) degrees = g_string_new (NULL);

  for (guint i = 0; i < all->len; i++)
    g_string_append_printf (degrees, "%s%u", i > 0 ? ", " : "", g_array_index (all, uint32_t, i));
  for (guint d = 0; d < space->degrees->dims->len; d++)
    {
      const PodGridDim *dim = g_ptr_array_index (space->degrees->dims, d);
      g_autoptr (GString) values = g_string_new (dim->key);
      bool divides = strcmp (dim->key, "topology") == 0 || strcmp (dim->key, "vpp") == 0;

      for (guint v = 0; v < dim->values->len; v++)
        {
          uint64_t value = 1;

          g_string_append_printf (values, "%c%s", v == 0 ? '=' : ',', (const char *) g_ptr_array_index (dim->values, v));
          if (!divides && pod_parse_whole (g_ptr_array_index (dim->values, v), POD_UNIT_COUNT, &value, NULL))
            divides = n_devices % value == 0;
        }
      if (!divides)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--space: %s: none divides %u devices; degrees that do: %s", values->str, n_devices, degrees->str);
          return;
        }
      if (strcmp (dim->key, "topology") != 0)
        g_string_append_printf (said, "%s%s", said->len > 0 ? " " : "", values->str);
    }
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--space: no layout of %u devices has %s: degrees multiply to all devices, unless --allow-idle is given", n_devices, said->str);
}

static bool
enumerate (PodSpace *space, GError **error)
{
  const PodLayout single = { .degree = { 1, 1, 1, 1, 1 }, .vpp = 1, .ep = 1, .etp = 1, .is_sequence_parallel = true };

  for (guint m = 0; m < space->machines->len; m++)
    {
      const PodTopology *topology = g_ptr_array_index (space->machines, m);
      g_auto (Enumeration) e = { .space = space, .machine = m, .n_devices = topology->n_devices };

      if (!set_degrees (&e, error) || !add_axes (&e, single, 0, topology->n_devices, error))
        return false;
    }
  if (space->layouts->len == 0)
    {
      refuse_empty (space, ((const PodTopology *) g_ptr_array_index (space->machines, 0))->n_devices, error);
      return false;
    }
  space->n_combinations = pod_grid_size (space->options);
  if (g_uint64_checked_mul (&space->n_candidates, space->layouts->len, space->n_combinations) && space->n_candidates <= MAX_CANDIDATES)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "--space: %u layouts times %" G_GUINT64_FORMAT " combinations of options are over %" G_GUINT64_FORMAT, space->layouts->len,
               space->n_combinations, MAX_CANDIDATES);
  return false;
}

PodSpace *
pod_space_new (const PodScenario *base, const GPtrArray *limits, GError **error)
{
  g_autoptr (PodSpace) space = g_new0 (PodSpace, 1);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);

  space->base = pod_scenario_copy (base);
  space->machines = g_ptr_array_new_with_free_func (topology_free);
  space->degrees = pod_grid_new ();
  space->options = pod_grid_new ();
  space->layouts = g_array_new (FALSE, FALSE, sizeof (PodSpaceLayout));
  if (base->mesh->len > 0 || base->shard->len > 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--mesh: a search varies the layout: say what it may be by --space, such as --space tp=1,2,4,8");
      return NULL;
    }
  if (!take_limits (space, limits, error) || !take_defaults (space, error) || !load_machines (space, error))
    return NULL;
  space->model = pod_scenario_model (base, notes, error);
  if (space->model == NULL || !enumerate (space, error))
    return NULL;
  pod_space_set_least (space);
  return g_steal_pointer (&space);
}

/* -- candidates ---- */

static const PodSpaceLayout *
layout_of (const PodSpace *space, uint64_t candidate)
{
  return &g_array_index (space->layouts, PodSpaceLayout, candidate / space->n_combinations);
}

bool
pod_space_has_effect (const PodLayout *layout, const char *key)
{
  const bool is_sharded = layout->degree[POD_AXIS_FSDP] > 1;
  const uint32_t replicas = layout->degree[POD_AXIS_DP] * (is_sharded ? 1 : layout->degree[POD_AXIS_CP]);

  if (strcmp (key, "zero") == 0) /* copies of experts may be more */
    return replicas > 1 || layout->ep > 1;
  if (strcmp (key, "sequence-parallel") == 0 || strcmp (key, "overlap-tp") == 0)
    return layout->degree[POD_AXIS_TP] > 1;
  if (strcmp (key, "overlap-fsdp") == 0 || strcmp (key, "prefetch") == 0)
    return is_sharded;
  if (strcmp (key, "overlap-p2p") == 0)
    return layout->degree[POD_AXIS_PP] > 1;
  if (strcmp (key, "cp-kind") == 0)
    return layout->degree[POD_AXIS_CP] > 1;
  return true;
}

bool
pod_space_is_repeated (const PodSpace *space, uint64_t candidate)
{
  const PodLayout *layout = &layout_of (space, candidate)->layout;
  const uint64_t combination = candidate % space->n_combinations;

  for (guint d = 0; d < space->options->dims->len; d++)
    {
      const PodGridDim *dim = g_ptr_array_index (space->options->dims, d);

      if (pod_grid_value (space->options, combination, d) != g_ptr_array_index (dim->values, 0) && !pod_space_has_effect (layout, dim->key))
        return true;
    }
  return false;
}

/* Layers that the stages do not divide evenly are dealt with the embedding and the head as one each where that comes out. */
static bool
needs_embed_head (const PodSpace *space, const PodLayout *layout)
{
  const uint64_t n_parts = (uint64_t) layout->degree[POD_AXIS_PP] * layout->vpp;

  return space->base->stage_layers == NULL && space->base->embed_head_as_layers < 0 && pod_grid_find (space->options, "stage-layers") == NULL
         && pod_grid_find (space->options, "embed-head-as-layers") == NULL && space->model->n_layers % n_parts != 0
         && (space->model->n_layers + 2) % n_parts == 0;
}

PodScenario *
pod_space_scenario (const PodSpace *space, uint64_t candidate)
{
  const PodSpaceLayout *entry = layout_of (space, candidate);
  PodScenario *scenario = pod_scenario_copy (space->base);
  const PodGridDim *machines = pod_grid_find (space->degrees, "topology");

  g_free (scenario->layout);
  scenario->layout = pod_layout_to_text (&entry->layout);
  if (machines != NULL)
    pod_scenario_set (scenario, "topology", g_ptr_array_index (machines->values, entry->machine), NULL);
  if (needs_embed_head (space, &entry->layout))
    scenario->embed_head_as_layers = 1;
  for (guint d = 0; d < space->options->dims->len; d++)
    pod_scenario_set (scenario, ((PodGridDim *) g_ptr_array_index (space->options->dims, d))->key,
                      pod_grid_value (space->options, candidate % space->n_combinations, d), NULL); /* checked by take_limits */
  return scenario;
}

char *
pod_space_words (const PodSpace *space, uint64_t candidate)
{
  const PodSpaceLayout *entry = layout_of (space, candidate);
  g_autofree char *layout = pod_layout_to_text (&entry->layout);
  GString *words = g_string_new (NULL);
  const PodGridDim *machines = pod_grid_find (space->degrees, "topology");

  if (machines != NULL)
    g_string_append_printf (words, "--topology %s ", (const char *) g_ptr_array_index (machines->values, entry->machine));
  g_string_append_printf (words, strchr (layout, ' ') != NULL ? "--layout \"%s\"" : "--layout %s", layout);
  if (needs_embed_head (space, &entry->layout))
    g_string_append (words, " --embed-head-as-layers");
  for (guint d = 0; d < space->options->dims->len; d++)
    {
      const PodGridDim *dim = g_ptr_array_index (space->options->dims, d);
      const char *value = pod_grid_value (space->options, candidate % space->n_combinations, d);

      if (!pod_space_has_effect (&entry->layout, dim->key))
        continue;
      if (option_named (dim->key)->kind == POD_OPTION_FLAG)
        g_string_append_printf (words, " --%s%s", pod_space_is_true (value) ? "" : "no-", dim->key);
      else
        g_string_append_printf (words, strpbrk (value, " ;*") != NULL ? " --%s \"%s\"" : " --%s %s", dim->key, value);
    }
  return g_string_free (words, FALSE);
}

void
pod_space_describe (const PodSpace *space, uint64_t candidate, JsonObject *out)
{
  const PodSpaceLayout *entry = layout_of (space, candidate);
  g_autofree char *words = pod_space_words (space, candidate);

  pod_result_set_string (out, "topology", ((PodTopology *) g_ptr_array_index (space->machines, entry->machine))->name);
  for (guint d = 0; d < space->options->dims->len; d++)
    {
      const PodGridDim *dim = g_ptr_array_index (space->options->dims, d);
      g_autofree char *path = g_strdup_printf ("options.%s", dim->key);

      g_strdelimit (path, "-", '_');
      if (pod_space_has_effect (&entry->layout, dim->key))
        pod_result_set_string (out, path, pod_grid_value (space->options, candidate % space->n_combinations, d));
    }
  pod_result_set_string (out, "command", words);
}
