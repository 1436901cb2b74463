#include "report/report-private.h"

#include <string.h>

#include "base/table.h"
#include "base/units.h"

/* What a person reads after `podsim run`. */

static void
append_heading (GString *out, const char *heading)
{
  g_string_append_printf (out, "\n%s\n", heading);
}

/* Columns start at the same place in all of the summary. */
static void G_GNUC_PRINTF (3, 4)
    append_field (GString *out, const char *name, const char *format, ...)
{
  va_list arguments;

  g_string_append_printf (out, "%-11s", name);
  va_start (arguments, format);
  g_string_append_vprintf (out, format, arguments);
  va_end (arguments);
  g_string_append_c (out, '\n');
}

static void
append_job (GString *out, JsonObject *result)
{
  const double chips = pod_report_number (result, "topology.chips");
  const double devices = pod_report_number (result, "topology.devices");
  const double batch = pod_report_number (result, "batch.global_batch");
  const double seq_len = pod_report_number (result, "batch.seq_len");
  g_autofree char *n_chips = pod_report_grouped (chips);
  g_autofree char *n_devices = pod_report_grouped (devices);
  g_autofree char *sequences = pod_report_grouped (batch);
  g_autofree char *length = pod_report_grouped (seq_len);
  g_autofree char *tokens = pod_format_count (batch * seq_len);
  g_autofree char *n_microbatches
      = pod_report_grouped (pod_report_number (result, "batch.microbatches"));
  g_autofree char *micro_batch
      = pod_report_grouped (pod_report_number (result, "batch.micro_batch"));
  g_autofree char *params = pod_format_count (pod_report_number (result, "model.params"));
  const char *map = pod_report_string_or (result, "map", "");

  append_field (out, "model", "%s, %s parameters", pod_report_string_or (result, "model.name", "?"),
                params);
  append_field (out, "machine", "%s, %s %s%s%s%s",
                pod_report_string_or (result, "topology.name", "?"), n_chips,
                chips == 1 ? "chip" : "chips", devices != chips ? " with " : "",
                devices != chips ? n_devices : "", devices != chips ? " devices" : "");
  append_field (out, "layout", "%s%s%s", pod_report_string_or (result, "layout", "?"),
                *map != '\0' ? "   placed " : "", map);
  append_field (out, "batch", "%s x %s tokens = %s, in %s %s of %s per data rank", sequences,
                length, tokens, n_microbatches,
                strcmp (n_microbatches, "1") == 0 ? "microbatch" : "microbatches", micro_batch);
  append_field (out, "fidelity", "%s", pod_report_string_or (result, "fidelity", "?"));
}

static void
append_speed (GString *out, JsonObject *result)
{
  const double time_s = pod_report_number (result, "step.time_s");
  const double bound_s = pod_report_number (result, "step.lower_bound_s");
  const double high_s = pod_report_number (result, "step.time_high_s");
  g_autofree char *time = pod_format_seconds (time_s);
  g_autofree char *low = pod_format_seconds (pod_report_number (result, "step.time_low_s"));
  g_autofree char *high = pod_format_seconds (high_s);
  g_autofree char *bound = pod_format_seconds (bound_s);
  g_autofree char *share = pod_report_percent (time_s > 0 ? bound_s / time_s : 0);
  g_autofree char *tokens = pod_report_grouped (pod_report_number (result, "step.tokens_per_s"));
  g_autofree char *each
      = pod_report_grouped (pod_report_number (result, "step.tokens_per_s_per_chip"));
  g_autofree char *flops
      = pod_format_flops (pod_report_number (result, "step.flops_per_s_per_chip"));

  append_heading (out, "one step");
  append_field (out, "time", "%s, lower bound %s (%s of it), bound by %s", time, bound, share,
                pod_report_string_or (result, "step.bound", "?"));
  if (high_s > 0)
    append_field (out, "range", "%s to %s, by the errors of what was measured", low, high);
  append_field (out, "tokens/s", "%s, %s per chip, %s/s per chip", tokens, each, flops);
}

/* " (megatron 64.2 %, palm 63.0 %)": the conventions that were not asked for. Returns: (transfer
 * full) */
static char *
other_conventions (JsonObject *result)
{
  JsonObject *conventions = pod_report_object (result, "step.mfu_by_convention");
  g_autoptr (GList) names = conventions != NULL ? json_object_get_members (conventions) : NULL;
  const char *used = pod_report_string_or (result, "step.flops_convention", "");
  GString *text = g_string_new (NULL);

  for (GList *l = names; l != NULL; l = l->next)
    {
      g_autofree char *mfu = pod_report_percent (
          pod_report_node_number (json_object_get_member (conventions, l->data)));

      if (strcmp (l->data, used) != 0)
        g_string_append_printf (text, "%s%s %s", text->len > 0 ? ", " : " (",
                                (const char *) l->data, mfu);
    }
  if (text->len > 0)
    g_string_append_c (text, ')');
  return g_string_free (text, FALSE);
}

static void
append_utilisation (GString *out, JsonObject *result)
{
  g_autofree char *mfu = pod_report_percent (pod_report_number (result, "step.mfu"));
  g_autofree char *hfu = pod_report_percent (pod_report_number (result, "step.hfu"));
  g_autofree char *peak
      = pod_format_flops (pod_report_number (result, "step.mfu_peak_flops_per_s"));
  g_autofree char *others = other_conventions (result);

  append_field (out, "MFU", "%s of %s/s a device, by %s FLOPs%s", mfu, peak,
                pod_report_string_or (result, "step.flops_convention", "model"), others);
  append_field (out, "HFU", "%s, with recomputation", hfu);
}

/* -- where the time goes ----------------------------------------------------------------------- */

typedef struct
{
  PodTable *table;
  PodReportUnit unit;
  double time_s;
} Breakdown;

static void
add_time (const Breakdown *breakdown, const char *name, double seconds, const char *note)
{
  g_autofree char *time = pod_report_in_unit (seconds, breakdown->unit, 2);
  g_autofree char *share
      = pod_report_percent (breakdown->time_s > 0 ? seconds / breakdown->time_s : 0);

  pod_table_add_row (breakdown->table, (const char *const[]){ name, time, share, note });
}

static void
add_part (const Breakdown *breakdown, JsonObject *result, const char *name, const char *path)
{
  const double seconds = pod_report_number (result, path);

  if (seconds > 0)
    add_time (breakdown, name, seconds, "in compute");
}

static void
append_breakdown (GString *out, JsonObject *result)
{
  const double time_s = pod_report_number (result, "step.time_s");
  g_autoptr (GArray) terms = pod_report_terms (result);
  g_autoptr (PodTable) table
      = pod_table_new ((const char *const[]){ "where the step goes", ">time", ">share", "", NULL });
  Breakdown breakdown = { .table = table, .unit = pod_report_time_unit (time_s), .time_s = time_s };
  g_autofree char *text = NULL;

  for (guint i = 0; i < terms->len; i++)
    {
      const PodReportTerm *term = &g_array_index (terms, PodReportTerm, i);
      g_autofree char *total
          = pod_report_in_unit ((double) term->total_ps / 1e12, breakdown.unit, 2);
      g_autofree char *note
          = term->axis != NULL ? g_strdup_printf ("of %s in all", total) : g_strdup ("");

      add_time (&breakdown, term->name, (double) term->time_ps / 1e12, note);
      if (i == 0)
        {
          add_part (&breakdown, result, "  recompute", "step.recompute_s");
          add_part (&breakdown, result, "  optimizer", "step.optimizer_s");
        }
    }
  add_time (&breakdown, "step", time_s, "");
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s", text);
}

/* -- memory ------------------------------------------------------------------------------------ */

static void
add_bytes (PodTable *table, const char *name, double bytes, double capacity, const char *note)
{
  const PodReportUnit unit = pod_report_bytes_unit (capacity);
  g_autofree char *size = pod_report_in_unit (bytes, unit, 2);
  g_autofree char *share = pod_report_percent (capacity > 0 ? bytes / capacity : 0);

  pod_table_add_row (table, (const char *const[]){ name, size, share, note });
}

static void
append_stages (GString *out, JsonObject *result, double capacity)
{
  JsonArray *stages = pod_report_array (result, "memory.stage_peak_bytes");
  const guint n_stages = pod_report_length (stages);
  const PodReportUnit unit = pod_report_bytes_unit (capacity);

  if (n_stages < 2)
    return;
  g_string_append (out, "peak by stage:");
  for (guint i = 0; i < n_stages; i++)
    {
      g_autofree char *peak = pod_report_fixed (
          pod_report_node_number (json_array_get_element (stages, i)) / unit.size, 2);

      g_string_append_printf (out, " %s%s", peak, i + 1 < n_stages ? "," : "");
    }
  g_string_append_printf (out, " %s\n", unit.name);
}

/* Single changes that would make it fit, fastest first. */
static void
append_would_fit (GString *out, JsonObject *result)
{
  JsonArray *changes = pod_report_array (result, "memory.would_fit");
  const guint n = pod_report_length (changes);

  for (guint i = 0; i < n; i++)
    {
      JsonObject *change = json_array_get_object_element (changes, i);
      g_autofree char *time = pod_format_seconds (pod_report_number (change, "time_s"));
      g_autofree char *peak = pod_format_bytes (pod_report_number (change, "peak_bytes"), false);

      g_string_append_printf (out, "%s %s: %s a step, peak %s\n",
                              i == 0 ? "would fit with" : "            or",
                              pod_report_string (change, "change"), time, peak);
    }
}

static void
append_memory (GString *out, JsonObject *result)
{
  const double capacity = pod_report_number (result, "memory.capacity_bytes");
  const double reserved = pod_report_number (result, "memory.reserved_bytes");
  const double peak = pod_report_number (result, "memory.peak_bytes");
  const double free_bytes = capacity - reserved - peak;
  g_autofree char *left = pod_format_bytes (free_bytes < 0 ? -free_bytes : free_bytes, false);
  g_autofree char *verdict
      = g_strdup_printf (free_bytes < 0 ? "DOES NOT FIT: %s too much" : "fits, %s free", left);
  g_autofree char *title = g_strdup_printf ("memory, rank %.0f (fullest)",
                                            pod_report_number (result, "memory.worst_rank"));
  g_autoptr (PodTable) table
      = pod_table_new ((const char *const[]){ title, ">size", ">share", "", NULL });
  g_autofree char *text = NULL;

  for (unsigned u = 0; u < POD_N_USES; u++)
    {
      g_autofree char *path = g_strdup_printf ("memory.%s_bytes", pod_memory_use_names[u]);

      add_bytes (table, pod_memory_use_names[u], pod_report_number (result, path), capacity, "");
    }
  add_bytes (table, "peak", peak, capacity, verdict);
  if (reserved > 0)
    {
      add_bytes (table, "context", pod_report_number (result, "memory.context_bytes"), capacity,
                 "driver and libraries");
      add_bytes (table, "comm buffers", pod_report_number (result, "memory.comm_buffers_bytes"),
                 capacity, "of communicators");
      add_bytes (table, "fragmentation", pod_report_number (result, "memory.fragmentation_bytes"),
                 capacity, "of the allocator");
    }
  add_bytes (table, "capacity", capacity, capacity, "");
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s", text);
  append_stages (out, result, capacity);
  append_would_fit (out, result);
}

/* -- the rest ---------------------------------------------------------------------------------- */

static void
append_training (GString *out, JsonObject *result)
{
  const double availability = pod_report_number (result, "train.availability");
  const double cost_usd = pod_report_number (result, "train.cost_usd");
  const double energy_kwh = pod_report_number (result, "train.energy_kwh");
  g_autofree char *tokens = pod_format_count (pod_report_number (result, "train.tokens"));
  g_autofree char *days = pod_report_fixed (pod_report_number (result, "train.days"), 1);
  g_autofree char *hours = pod_report_grouped (pod_report_number (result, "train.chip_hours"));
  g_autofree char *cost = pod_report_grouped (cost_usd);
  g_autofree char *price
      = pod_report_fixed (pod_report_number (result, "train.usd_per_chip_hour"), 2);
  g_autofree char *energy = pod_report_grouped (energy_kwh);
  g_autofree char *percent = pod_format_double (availability * 100);

  if (pod_report_object (result, "train") == NULL)
    return;
  g_string_append_printf (out, "\ntraining on %s tokens, at %s %% availability\n", tokens, percent);
  append_field (out, "days", "%s (%s chip-hours)", days, hours);
  if (cost_usd > 0)
    append_field (out, "cost", "%s USD at %s USD a chip-hour", cost, price);
  if (energy_kwh > 0)
    append_field (out, "energy", "%s kWh, chips alone at full power", energy);
}

/* The steps with one thing better, where they were run. */
static void
append_what_if (GString *out, JsonObject *result)
{
  JsonArray *changes = pod_report_array (result, "what_if");
  const char *note = pod_report_string (result, "what_if_note");
  g_autoptr (PodTable) table = changes != NULL ? pod_report_what_if (changes, false) : NULL;
  g_autofree char *text = table != NULL ? pod_table_to_text (table) : NULL;

  if (table != NULL && pod_table_n_rows (table) > 0)
    g_string_append_printf (out, "\n%s", text);
  if (note != NULL)
    g_string_append_printf (out, "\nwhat gains most: %s\n", note);
}

static void
append_list (GString *out, JsonObject *result, const char *name)
{
  JsonArray *lines = pod_report_array (result, name);
  const guint n_lines = pod_report_length (lines);

  if (n_lines == 0)
    return;
  append_heading (out, name);
  for (guint i = 0; i < n_lines; i++)
    g_string_append_printf (out, "- %s\n", json_array_get_string_element (lines, i));
}

char *
pod_report_step (JsonObject *result)
{
  g_return_val_if_fail (result != NULL, NULL);

  GString *out = g_string_new (NULL);

  append_job (out, result);
  append_speed (out, result);
  append_utilisation (out, result);
  append_breakdown (out, result);
  append_memory (out, result);
  append_training (out, result);
  append_what_if (out, result);
  append_list (out, result, "assumptions");
  append_list (out, result, "warnings");
  return g_string_free (out, FALSE);
}
