#include "cli/roofline-private.h"

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>

static const char *
bound_name (PodBound bound)
{
  switch (bound)
    {
    case POD_BOUND_COMPUTE:
      return "compute";
    case POD_BOUND_HBM:
      return "hbm";
    case POD_BOUND_OVERHEAD:
    default:
      return "overhead";
    }
}

/* What bounds the op, by the name of the place. */
static const char *
bound_text (const PodRooflineJob *job)
{
  return job->result.time.bound == POD_BOUND_HBM ? pod_place_name (job->input.place)
                                                 : bound_name (job->result.time.bound);
}

static double
rated (const PodRooflineJob *job, PodRated value)
{
  return job->fidelity == POD_FIDELITY_BOOK ? value.book : value.nominal;
}

/* Leaves out what the chip file does not give. */
static void
set_fact (JsonObject *root, const char *path, double value)
{
  if (value > 0.0)
    pod_result_set_double (root, path, value);
}

/* Facts of the whole chip, the book's under --fidelity book. */
static void
set_chip (const PodRooflineJob *job, JsonObject *root)
{
  const PodChip *chip = job->chip;
  double peak = rated (job, chip->peak_flops_per_s[POD_DTYPE_BF16]);
  double vector = rated (job, chip->vector_flops_per_s);
  double n_cores = MAX (1u, chip->cores_per_chip);

  pod_result_set_string (root, "chip.name", chip->name);
  pod_result_set_string (root, "chip.title", chip->title != NULL ? chip->title : chip->name);
  pod_result_set_int (root, "chip.devices_per_chip", chip->devices_per_chip);
  pod_result_set_int (root, "chip.cores_per_chip", chip->cores_per_chip);
  for (unsigned dtype = 0; dtype < POD_N_DTYPES; dtype++)
    {
      g_autofree char *path
          = g_strdup_printf ("chip.peak_flops_per_s.%s", pod_dtype_name ((PodDtype) dtype));

      set_fact (root, path, rated (job, chip->peak_flops_per_s[dtype]));
    }
  set_fact (root, "chip.multiply_adds_per_s", peak / 2.0);
  set_fact (root, "chip.vector_flops_per_s", vector);
  set_fact (root, "chip.vector_flops_per_s_per_core", vector / n_cores);
  if (vector > 0.0)
    set_fact (root, "chip.matrix_to_vector_ratio", peak / vector);
  if (chip->mxu_dim > 0 && chip->mxus_per_core > 0)
    {
      pod_result_set_int (root, "chip.mxu_dim", chip->mxu_dim);
      pod_result_set_int (root, "chip.mxus_per_core", chip->mxus_per_core);
      set_fact (root, "chip.mxu_flops_per_s", peak / (n_cores * chip->mxus_per_core));
    }
  set_fact (root, "chip.hbm_bytes", rated (job, chip->hbm_bytes));
  set_fact (root, "chip.hbm_bytes_per_s", rated (job, chip->hbm_bytes_per_s));
  set_fact (root, "chip.vmem_bytes", rated (job, chip->vmem_bytes));
  set_fact (root, "chip.vmem_bytes_per_s", rated (job, chip->vmem_bytes_per_s));
  set_fact (root, "chip.l2_bytes", rated (job, chip->l2_bytes));
  set_fact (root, "chip.host_bytes_per_s", rated (job, chip->host_bytes_per_s));
  set_fact (root, "chip.nic_bytes_per_s", rated (job, chip->nic_bytes_per_s));
  set_fact (root, "chip.scale_up_bytes_per_s", rated (job, chip->scale_up_bytes_per_s));
  set_fact (root, "chip.ici_bytes_per_s", rated (job, chip->ici_bytes_per_s));
  set_fact (root, "chip.ici_bidirectional_bytes_per_s", 2.0 * rated (job, chip->ici_bytes_per_s));
  set_fact (root, "chip.clock_hz", chip->clock_hz);
  set_fact (root, "chip.tdp_w", chip->tdp_w);
}

static void
set_roofline (const PodRooflineJob *job, JsonObject *root)
{
  const PodRoofline *result = &job->result;
  const PodKernelTime *time = &result->time;
  bool has_batch = !isnan (result->critical_batch);

  pod_result_set_string (root, "roofline.op", pod_roofline_op_name (job->input.op));
  pod_result_set_string (root, "roofline.from", pod_place_name (job->input.place));
  pod_result_set_string (root, "roofline.compute_dtype", pod_dtype_name (result->used_dtype));
  pod_result_set_double (root, "roofline.time_s", time->time_s);
  pod_result_set_double (root, "roofline.flop_s", time->flop_s);
  pod_result_set_double (root, "roofline.memory_s", time->memory_s);
  pod_result_set_double (root, "roofline.overhead_s", time->overhead_s);
  pod_result_set_double (root, "roofline.lower_bound_s", result->lower_bound_s);
  pod_result_set_double (root, "roofline.upper_bound_s", result->upper_bound_s);
  pod_result_set_string (root, "roofline.bound", bound_text (job));
  pod_result_set_double (root, "roofline.flops", result->kernel.flops);
  pod_result_set_double (root, "roofline.read_bytes", result->kernel.read_bytes);
  pod_result_set_double (root, "roofline.write_bytes", result->kernel.write_bytes);
  pod_result_set_double (root, "roofline.intensity_flops_per_byte",
                         result->intensity_flops_per_byte);
  pod_result_set_double (root, "roofline.ridge_flops_per_byte", result->ridge_flops_per_byte);
  if (has_batch)
    {
      /* null where no batch is compute-bound */
      pod_result_set_double (root, "roofline.critical_batch", result->critical_batch);
      pod_result_set_double (root, "roofline.critical_batch_rule", result->critical_batch_rule);
    }
  pod_result_set_double (root, "roofline.attained_flops_per_s", result->attained_flops_per_s);
  pod_result_set_double (root, "roofline.peak_flops_per_s", time->peak_flops_per_s);
  pod_result_set_double (root, "roofline.memory_bytes_per_s", result->memory_bytes_per_s);
  pod_result_set_double (root, "roofline.padding_ratio", time->padding_ratio);
  pod_result_set_double (root, "roofline.wave_ratio", time->wave_ratio);
  pod_result_set_double (root, "roofline.efficiency_ratio", time->efficiency);
  if (time->tile_m == 0)
    return;
  pod_result_set_double (root, "roofline.waves", time->waves);
  pod_result_set_int (root, "roofline.tile_m", time->tile_m);
  if (time->tile_n > 0)
    pod_result_set_int (root, "roofline.tile_n", time->tile_n);
  pod_result_set_int (root, "roofline.splits", time->n_splits);
}

bool
pod_roofline_write_json (const PodRooflineJob *job, GError **error)
{
  g_autoptr (JsonObject) root = json_object_new ();
  char **overrides = job->options.overrides;
  JsonArray *list;

  pod_result_set_int (root, "schema_version", 1);
  pod_result_set_string (root, "topology", job->options.topology);
  pod_result_set_string (root, "fidelity", pod_fidelity_name (job->fidelity));
  set_roofline (job, root);
  set_chip (job, root);
  list = pod_result_get_array (root, "overrides");
  for (unsigned i = 0; overrides != NULL && overrides[i] != NULL; i++)
    json_array_add_string_element (list, overrides[i]);
  list = pod_result_get_array (root, "assumptions");
  for (unsigned i = 0; i < job->assumptions->len; i++)
    json_array_add_string_element (list, job->assumptions->pdata[i]);
  return pod_cli_write_json (root, job->options.json, error);
}

/* Takes @value. */
static void
add_row (PodTable *table, const char *name, char *value)
{
  const char *const cells[] = { name, value, NULL };

  pod_table_add_row (table, cells);
  g_free (value);
}

static char *
format_batch (double batch)
{
  return isfinite (batch) ? g_strdup_printf ("%.1f", batch) : g_strdup ("none");
}

static void
add_explanation (const PodRooflineJob *job, PodTable *table)
{
  const PodKernelTime *time = &job->result.time;
  g_autofree char *flops = pod_format_flops (job->result.kernel.flops);
  g_autofree char *peak = pod_format_flops (time->peak_flops_per_s);
  g_autofree char *read = pod_format_bytes (job->result.kernel.read_bytes, false);
  g_autofree char *written = pod_format_bytes (job->result.kernel.write_bytes, false);

  add_row (table, "formula", g_strdup ("max(arithmetic, memory) + overhead"));
  add_row (table, "FLOPs", g_steal_pointer (&flops));
  add_row (table, "peak", g_strdup_printf ("%s/s", peak));
  add_row (table, "read", g_steal_pointer (&read));
  add_row (table, "written", g_steal_pointer (&written));
  add_row (table, "memory rate", pod_format_bytes_per_s (job->result.memory_bytes_per_s));
  add_row (table, "efficiency of peak", g_strdup_printf ("%.3f", time->efficiency));
  add_row (table, "padding", g_strdup_printf ("%.3f", time->padding_ratio));
  if (time->tile_m == 0)
    return;
  if (time->tile_n > 0)
    add_row (table, "tile", g_strdup_printf ("%ux%u", time->tile_m, time->tile_n));
  else
    add_row (table, "queries per block", g_strdup_printf ("%u", time->tile_m));
  add_row (table, "splits", g_strdup_printf ("%u", time->n_splits));
  add_row (table, "waves", g_strdup_printf ("%.4g", time->waves));
  add_row (table, "wave quantisation", g_strdup_printf ("%.3f", time->wave_ratio));
}

void
pod_roofline_print (const PodRooflineJob *job)
{
  const char *const columns[] = { "roofline", ">value", NULL };
  const PodRoofline *result = &job->result;
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *attained = pod_format_flops (result->attained_flops_per_s);
  g_autofree char *text = NULL;

  add_row (table, "chip", g_strdup (job->chip->name));
  add_row (table, "op", g_strdup (pod_roofline_op_name (job->input.op)));
  add_row (table, "fidelity", g_strdup (pod_fidelity_name (job->fidelity)));
  add_row (table, "time", pod_format_seconds (result->time.time_s));
  add_row (table, "bound", g_strdup (bound_text (job)));
  add_row (table, "arithmetic", pod_format_seconds (result->time.flop_s));
  add_row (table, "memory", pod_format_seconds (result->time.memory_s));
  add_row (table, "overhead", pod_format_seconds (result->time.overhead_s));
  add_row (table, "lower bound", pod_format_seconds (result->lower_bound_s));
  add_row (table, "upper bound", pod_format_seconds (result->upper_bound_s));
  add_row (table, "attained", g_strdup_printf ("%s/s", attained));
  add_row (table, "intensity", g_strdup_printf ("%.4g FLOP/B", result->intensity_flops_per_byte));
  add_row (table, "ridge", g_strdup_printf ("%.4g FLOP/B", result->ridge_flops_per_byte));
  if (!isnan (result->critical_batch))
    {
      const char *name
          = job->input.op == POD_ROOFLINE_MATMUL ? "critical batch" : "critical queries";

      add_row (table, name, format_batch (result->critical_batch));
      add_row (table, "  rule of thumb", format_batch (result->critical_batch_rule));
    }
  if (job->options.is_explained)
    add_explanation (job, table);
  text = pod_table_to_text (table);
  fputs (text, stdout);
  for (char **override = job->options.overrides; override != NULL && *override != NULL; override++)
    printf ("set: %s\n", *override);
  for (unsigned i = 0; i < job->assumptions->len; i++)
    printf ("assumed: %s\n", (const char *) job->assumptions->pdata[i]);
}
