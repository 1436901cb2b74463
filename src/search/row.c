#include "search/row.h"

#include <string.h>

#include "base/error.h"

const char *const pod_row_status_names[POD_N_ROW_STATUSES] = {
  [POD_ROW_NONE] = "not run",
  [POD_ROW_FITS] = "fits",
  [POD_ROW_TOO_LARGE] = "too large",
  [POD_ROW_REFUSED] = "refused",
};

/* USD per chip-hour, below 0 where nobody says. */
static double
price_of (const PodScenario *scenario, const PodChip *chip)
{
  if (scenario->price >= 0)
    return scenario->price;
  return chip->price_usd_per_h > 0 ? chip->price_usd_per_h : -1;
}

static double
number_or (JsonObject *result, const char *path, double fallback)
{
  double value;

  return pod_result_get_double (result, path, &value) ? value : fallback;
}

/* What the forward passes of a step spend at the least on communication that overlaps itself alone, axis by axis. */
static int64_t
forward_comm_ps (const PodExecResult *exec)
{
  double most_s = 0;

  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    most_s = MAX (most_s, exec->phase_comm_s[POD_PHASE_FORWARD][a]);
  return (int64_t) (most_s * 1e12);
}

static void
take_step (const PodScenario *scenario, const PodRun *run, PodRow *row)
{
  const PodExecResult *exec = run->exec;
  const PodBreakdown *b = &exec->breakdown;
  const double price = price_of (scenario, run->topology->chip);

  row->time_ps = exec->time_ps;
  row->lower_bound_ps = MIN (exec->lower_bound_ps, exec->time_ps);
  row->compute_ps = b->compute_ps;
  row->optimizer_ps = b->optimizer_ps;
  row->recompute_ps = b->recompute_ps;
  row->bubble_ps = b->bubble_ps;
  row->idle_ps = b->idle_ps;
  row->forward_comm_ps = forward_comm_ps (exec);
  row->forward_compute_ps = (int64_t) (exec->phase_compute_s[POD_PHASE_FORWARD] * 1e12);
  memcpy (row->exposed_ps, b->exposed_ps, sizeof row->exposed_ps);
  memcpy (row->comm_ps, b->comm_ps, sizeof row->comm_ps);
  row->mfu = number_or (run->result, "step.mfu", 0);
  row->hfu = number_or (run->result, "step.hfu", 0);
  row->tokens_per_s = number_or (run->result, "step.tokens_per_s", 0);
  row->tokens_per_s_per_chip = number_or (run->result, "step.tokens_per_s_per_chip", 0);
  row->usd_per_step = price >= 0 ? (double) exec->time_ps / 1e12 / 3600 * run->topology->n_chips * price : -1;
  row->train_days = number_or (run->result, "train.days", -1);
  row->train_usd = number_or (run->result, "train.cost_usd", -1);
  g_strlcpy (row->bound, json_object_get_string_member (json_object_get_object_member (run->result, "step"), "bound"), sizeof row->bound);
}

static void
take_run (const PodScenario *scenario, const PodRun *run, PodRow *row)
{
  g_autofree char *layout = pod_layout_to_text (&run->job.layout);

  row->status = run->fits ? POD_ROW_FITS : POD_ROW_TOO_LARGE;
  row->chips = run->topology->n_chips;
  row->chips_used = (uint32_t) ((uint64_t) run->mesh->n_ranks * run->topology->n_chips / run->topology->n_devices);
  row->capacity_bytes = number_or (run->result, "memory.capacity_bytes", 0);
  row->reserved_bytes = number_or (run->result, "memory.reserved_bytes", 0);
  row->peak_bytes = run->exec->peak_bytes;
  memcpy (row->by_use, run->exec->by_use, sizeof row->by_use);
  g_strlcpy (row->layout, layout, sizeof row->layout);
  g_strlcpy (row->map, run->mesh->text, sizeof row->map);
  take_step (scenario, run, row);
}

/* Words that mean nothing are wrong whatever the layout; what cannot be modelled or does not divide may hang on it. */
static bool
is_of_layout (const GError *error)
{
  return g_error_matches (error, POD_ERROR, POD_ERROR_UNSUPPORTED) || g_error_matches (error, POD_ERROR, POD_ERROR_INFEASIBLE)
         || g_error_matches (error, POD_ERROR, POD_ERROR_LIMIT) || g_error_matches (error, POD_ERROR, POD_ERROR_MEMORY);
}

static void
clear (PodRow *row)
{
  memset (row, 0, sizeof *row); /* padding too: rows are compared and sent as bytes */
  row->usd_per_step = row->train_days = row->train_usd = -1;
}

bool
pod_row_refuse (PodRow *row, GError **refusal, GError **error)
{
  clear (row);
  if (!is_of_layout (*refusal))
    {
      g_propagate_error (error, g_steal_pointer (refusal));
      return false;
    }
  row->status = g_error_matches (*refusal, POD_ERROR, POD_ERROR_MEMORY) ? POD_ROW_TOO_LARGE : POD_ROW_REFUSED;
  row->error_code = (*refusal)->code;
  g_strlcpy (row->refusal, (*refusal)->message, sizeof row->refusal);
  return true;
}

bool
pod_row_run (const PodScenario *scenario, const PodRunRequest *request, PodRow *row, PodRun **out_run, GError **error)
{
  g_autoptr (GError) refusal = NULL;
  g_autoptr (PodRun) run = NULL;

  clear (row);
  run = pod_scenario_run (scenario, request, &refusal);
  if (run != NULL && run->exec->is_partial)
    return false;
  if (run != NULL)
    {
      take_run (scenario, run, row);
      if (out_run != NULL)
        *out_run = g_steal_pointer (&run);
      return true;
    }
  return pod_row_refuse (row, &refusal, error);
}

bool
pod_rows_any_fits (const GArray *rows)
{
  for (guint i = 0; i < rows->len; i++)
    if (g_array_index (rows, PodRow, i).status == POD_ROW_FITS)
      return true;
  return false;
}

double
pod_row_bytes (const PodRow *row)
{
  return row->peak_bytes + row->reserved_bytes;
}

static void
set_axes (JsonObject *object, const char *path, const int64_t ps[POD_N_COMM_AXES], const int64_t other_ps[POD_N_COMM_AXES])
{
  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    if (ps[a] > 0 || other_ps[a] > 0)
      {
        g_autofree char *key = g_strdup_printf ("%s.%s", path, pod_axis_name (a));

        pod_result_set_double (object, key, (double) ps[a] / 1e12);
      }
}

static void
set_step (JsonObject *object, const PodRow *row)
{
  const struct
  {
    const char *key;
    int64_t ps;
  } times[] = {
    { "step.time_s", row->time_ps },           { "step.lower_bound_s", row->lower_bound_ps }, { "step.compute_s", row->compute_ps },
    { "step.optimizer_s", row->optimizer_ps }, { "step.recompute_s", row->recompute_ps },     { "step.bubble_s", row->bubble_ps },
    { "step.idle_s", row->idle_ps },           { "step.forward_comm_s", row->forward_comm_ps },   { "step.forward_compute_s", row->forward_compute_ps },
  };

  for (unsigned i = 0; i < G_N_ELEMENTS (times); i++)
    pod_result_set_double (object, times[i].key, (double) times[i].ps / 1e12);
  set_axes (object, "step.exposed_comm_s", row->exposed_ps, row->comm_ps);
  set_axes (object, "step.comm_s", row->comm_ps, row->exposed_ps);
  pod_result_set_double (object, "step.tokens_per_s", row->tokens_per_s);
  pod_result_set_double (object, "step.tokens_per_s_per_chip", row->tokens_per_s_per_chip);
  pod_result_set_double (object, "step.mfu", row->mfu);
  pod_result_set_double (object, "step.hfu", row->hfu);
  pod_result_set_string (object, "step.bound", row->bound);
  pod_result_set_int (object, "step.time_ps", row->time_ps);
}

static void
set_memory (JsonObject *object, const PodRow *row)
{
  pod_result_set_double (object, "memory.capacity_bytes", row->capacity_bytes);
  pod_result_set_double (object, "memory.reserved_bytes", row->reserved_bytes);
  pod_result_set_double (object, "memory.peak_bytes", row->peak_bytes);
  pod_result_set_bool (object, "memory.fits", row->status == POD_ROW_FITS);
  for (unsigned u = 0; u < POD_N_USES; u++)
    {
      g_autofree char *key = g_strdup_printf ("memory.%s_bytes", pod_memory_use_names[u]);

      pod_result_set_double (object, key, row->by_use[u]);
    }
}

JsonObject *
pod_row_to_json (const PodRow *row)
{
  JsonObject *object = json_object_new ();

  pod_result_set_string (object, "status", pod_row_status_names[row->status]);
  if (row->time_ps == 0)
    {
      pod_result_set_string (object, "reason", row->refusal);
      return object;
    }
  pod_result_set_string (object, "layout", row->layout);
  pod_result_set_string (object, "map", row->map);
  pod_result_set_int (object, "chips", row->chips);
  pod_result_set_int (object, "chips_used", row->chips_used);
  set_step (object, row);
  set_memory (object, row);
  if (row->usd_per_step >= 0)
    pod_result_set_double (object, "cost.usd_per_step", row->usd_per_step);
  if (row->train_days >= 0)
    pod_result_set_double (object, "train.days", row->train_days);
  if (row->train_usd >= 0)
    pod_result_set_double (object, "train.cost_usd", row->train_usd);
  return object;
}
