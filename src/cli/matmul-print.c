#include "cli/matmul-private.h"

#include <math.h>
#include <stdio.h>

#include "base/table.h"
#include "base/units.h"

enum
{
  MAX_SHOWN = 10, /* strategies, unless all are asked for */
};

double
pod_matmul_total_bytes (const PodMatmulStrategy *strategy)
{
  return strategy->argument_bytes + strategy->output_bytes + strategy->workspace_bytes;
}

double
pod_matmul_flops (const PodMatmulJob *job)
{
  double flops = 2;

  for (unsigned loop = 0; loop < job->strategies->n_loops; loop++)
    flops *= (double) job->strategies->extent[loop];
  return flops;
}

double
pod_matmul_work_copies (const PodMatmulJob *job, const PodMatmulStrategy *strategy)
{
  return strategy->flops * pod_array_mesh_n_devices (&job->mesh) / pod_matmul_flops (job);
}

char *
pod_matmul_bound (const PodMatmulJob *job, const PodPricedMatmul *priced)
{
  unsigned axes = 0;
  double longest_s = 0;
  g_autofree char *text = NULL;

  if (priced->comm_s <= priced->compute.time_s)
    return g_strdup (priced->compute.bound == POD_BOUND_HBM ? "hbm" : "compute");
  for (guint i = 0; i < priced->steps->len; i++)
    {
      const PodPricedStep *step = g_ptr_array_index (priced->steps, i);

      if (step->time_s > longest_s)
        {
          longest_s = step->time_s;
          axes = step->step->axes;
        }
    }
  text = pod_array_mesh_mask_text (&job->mesh, axes);
  return g_strdup_printf ("network:%s", text);
}

/* ---- arrays ---- */

/* "[8192, 4096]", of one device or of the whole. */
static char *
shape_text (const PodMatmulJob *job, const PodArray *array, bool is_local)
{
  GString *text = g_string_new ("[");

  for (unsigned d = 0; d < array->n_dims; d++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "",
                            is_local ? pod_array_local_size (array, &job->mesh, d)
                                     : array->size[d]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

static void
print_arrays (const PodMatmulJob *job)
{
  static const char *const columns[]
      = { "array",   "dtype",         ">shape", ">of a device", ">bytes of it", ">part",
          ">copies", ">bytes of all", NULL };
  const PodArray *const arrays[] = { &job->einsum.lhs, &job->einsum.rhs, &job->einsum.out };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;
  unsigned n_devices = pod_array_mesh_n_devices (&job->mesh);

  for (unsigned i = 0; i < (job->einsum.is_matmul ? G_N_ELEMENTS (arrays) : 1); i++)
    {
      const PodArray *array = arrays[i];
      unsigned n_parts = pod_array_mesh_size (&job->mesh, pod_array_axes (array));
      double local_bytes = pod_array_local_bytes (array, &job->mesh);
      g_autofree char *name = pod_array_to_text (array, &job->mesh);
      g_autofree char *shape = shape_text (job, array, false);
      g_autofree char *local = shape_text (job, array, true);
      g_autofree char *bytes = pod_format_bytes (local_bytes, false);
      g_autofree char *part = n_parts > 1 ? g_strdup_printf ("1/%u", n_parts) : g_strdup ("all");
      g_autofree char *copies = g_strdup_printf ("%u", n_devices / n_parts);
      g_autofree char *all = pod_format_bytes (local_bytes * n_devices, false);
      const char *const cells[]
          = { name, pod_dtype_name (array->dtype), shape, local, bytes, part, copies, all };

      pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  printf ("\n%s", text);
}

/* ---- cases ---- */

static void
print_cases (const PodMatmulJob *job)
{
  static const char *const columns[] = { "axis", ">size", ">case", "why", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (unsigned axis = 0; axis < job->mesh.n_axes; axis++)
    {
      g_autofree char *why = NULL;
      g_autofree char *number
          = g_strdup_printf ("%u", pod_matmul_case (job->strategies, axis, &why));
      g_autofree char *size = g_strdup_printf ("%u", job->mesh.size[axis]);
      const char name[] = { job->mesh.name[axis], '\0' };
      const char *const cells[] = { name, size, number, why };

      pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  printf ("\n%s", text);
}

/* ---- strategies ---- */

/* "AllGather_X B, slice_X A", as the book writes them. */
static char *
steps_text (const PodMatmulJob *job, const PodMatmulStrategy *strategy)
{
  static const char *const names[] = {
    [POD_STEP_SLICE] = "slice",          [POD_STEP_ALL_GATHER] = "AllGather",
    [POD_STEP_ALL_TO_ALL] = "AllToAll",  [POD_STEP_REDUCE_SCATTER] = "ReduceScatter",
    [POD_STEP_ALL_REDUCE] = "AllReduce", [POD_STEP_PERMUTE] = "Permute",
  };
  GString *text = g_string_new (NULL);

  for (unsigned s = 0; s < strategy->n_steps; s++)
    {
      const PodShardStep *step = &strategy->steps[s];
      g_autofree char *axes = pod_array_mesh_mask_text (&job->mesh, step->axes);

      g_string_append_printf (text, "%s%s_%s %s", s > 0 ? ", " : "", names[step->kind], axes,
                              pod_matmul_operand (job->strategies, step->operand)->name);
    }
  if (text->len == 0)
    g_string_append (text, "nothing");
  return g_string_free (text, FALSE);
}

static void
add_strategy (const PodMatmulJob *job, const PodPricedMatmul *priced, PodTable *table)
{
  const PodMatmulStrategy *strategy = priced->strategy;
  double total_bytes = pod_matmul_total_bytes (strategy),
         n_copies = pod_matmul_work_copies (job, strategy);
  g_autofree char *name = pod_matmul_strategy_name (job->strategies, strategy);
  g_autofree char *marked = g_strdup_printf ("%s%s", name, priced == job->by_cases ? " *" : "");
  g_autofree char *steps = steps_text (job, strategy);
  g_autofree char *flops = pod_format_flops (strategy->flops);
  g_autofree char *work
      = n_copies > 1 ? g_strdup_printf ("%s (%.3gx)", flops, n_copies) : g_strdup (flops);
  g_autofree char *bytes = pod_format_bytes (total_bytes, false);
  g_autofree char *held
      = g_strdup_printf ("%s%s", bytes, total_bytes <= job->capacity_bytes ? "" : " !");
  g_autofree char *compute = pod_format_seconds (priced->compute.time_s);
  g_autofree char *comm = pod_format_seconds (priced->comm_s);
  g_autofree char *serial = pod_format_seconds (priced->serial_s);
  g_autofree char *overlapped = pod_format_seconds (priced->overlapped_s);
  const char *const cells[] = { marked, steps, work, held, compute, comm, serial, overlapped };

  pod_table_add_row (table, cells);
}

static bool
is_shown (const PodMatmulJob *job, guint index)
{
  const PodPricedMatmul *priced = g_ptr_array_index (job->prices, index);

  return index < MAX_SHOWN || job->options.is_explained || priced == job->by_cases
         || priced == job->best_overlapped;
}

static void
print_strategies (const PodMatmulJob *job)
{
  static const char *const columns[]
      = { "cut",      "besides the product", ">FLOPs", ">bytes", ">compute", ">network",
          ">in turn", ">overlapped",         NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;
  guint n_hidden = 0;
  bool is_crowded = false;

  for (guint i = 0; i < job->prices->len; i++)
    {
      const PodPricedMatmul *priced = g_ptr_array_index (job->prices, i);

      n_hidden += !is_shown (job, i);
      if (!is_shown (job, i))
        continue;
      add_strategy (job, priced, table);
      is_crowded |= pod_matmul_total_bytes (priced->strategy) > job->capacity_bytes;
    }
  text = pod_table_to_text (table);
  printf ("\n%s", text);
  if (job->by_cases != NULL)
    printf ("* by the four cases\n");
  if (is_crowded)
    printf ("! does not fit in the device's memory\n");
  if (n_hidden > 0)
    printf ("%u more, slower in turn: --explain shows all\n", n_hidden);
}

static void
print_best (const PodMatmulJob *job)
{
  const PodPricedMatmul *best = g_ptr_array_index (job->prices, 0);
  g_autofree char *name = pod_matmul_strategy_name (job->strategies, best->strategy);
  g_autofree char *serial = pod_format_seconds (best->serial_s);
  g_autofree char *bound = pod_matmul_bound (job, best);
  g_autofree char *other
      = pod_matmul_strategy_name (job->strategies, job->best_overlapped->strategy);
  g_autofree char *overlapped = pod_format_seconds (job->best_overlapped->overlapped_s);

  printf ("\nbest        %s: %s in turn, bound by %s\noverlapped  %s: %s\n", name, serial, bound,
          other, overlapped);
}

/* ---- the explanation ---- */

static void
explain_critical (const PodMatmulJob *job, const PodPricedMatmul *priced)
{
  const char *separator = "  compute takes longer from ";

  for (unsigned loop = 0; loop < job->strategies->n_loops; loop++)
    {
      if (!isfinite (priced->critical[loop]))
        continue;
      printf ("%s%c=%.5g", separator, job->strategies->loop[loop], priced->critical[loop]);
      separator = ", or ";
    }
  if (*separator == ',')
    printf (" (each alone, by rates)\n");
  else
    printf ("  compute never takes longer, whichever size grows\n");
}

static void
explain (const PodMatmulJob *job, const PodPricedMatmul *priced)
{
  const PodMatmulStrategy *strategy = priced->strategy;
  g_autofree char *name = pod_matmul_strategy_name (job->strategies, strategy);
  g_autofree char *argument = pod_format_bytes (strategy->argument_bytes, false);
  g_autofree char *output = pod_format_bytes (strategy->output_bytes, false);
  g_autofree char *workspace = pod_format_bytes (strategy->workspace_bytes, false);
  g_autofree char *flop = pod_format_seconds (priced->compute.flop_s);
  g_autofree char *memory = pod_format_seconds (priced->compute.memory_s);

  printf ("\n%s\n  product [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT "] x [%" G_GUINT64_FORMAT
          ", %" G_GUINT64_FORMAT "]",
          name, strategy->m, strategy->k, strategy->k, strategy->n);
  if (strategy->batch > 1)
    printf (", %" G_GUINT64_FORMAT " times", strategy->batch);
  printf (": arithmetic %s, memory %s\n  a device holds %s of operands, %s of result, %s of "
          "workspace\n",
          flop, memory, argument, output, workspace);
  for (guint i = 0; i < priced->steps->len; i++)
    {
      const PodPricedStep *step = g_ptr_array_index (priced->steps, i);
      g_autofree char *axes = pod_array_mesh_mask_text (&job->mesh, step->step->axes);
      g_autofree char *payload = pod_format_bytes (step->payload_bytes, false);
      g_autofree char *sent = pod_format_bytes (step->device_bytes, false);
      g_autofree char *time = pod_format_seconds (step->time_s);

      printf ("  %s %s over %s: %u group%s of %u, %s each, %s sent by each device: %s\n    %s",
              pod_step_name (step->step->kind),
              pod_matmul_operand (job->strategies, step->step->operand)->name, axes, step->n_groups,
              step->n_groups == 1 ? "" : "s", step->n_ranks, payload, sent, time, step->explain);
      if (step->contention_ratio > 1 + 1e-9)
        printf ("; the groups share links: %.3gx", step->contention_ratio);
      printf ("\n");
    }
  if (priced->steps->len == 0)
    return;
  explain_critical (job, priced);
}

static void
print_explanation (const PodMatmulJob *job)
{
  printf ("\nin turn     compute + network\n");
  printf ("overlapped  %s\n",
          job->fidelity == POD_FIDELITY_BOOK
              ? "max(compute, network)"
              : "max(compute, network + compute/N), in N pieces, N the smallest group");
  for (guint i = 0; i < job->prices->len; i++)
    explain (job, g_ptr_array_index (job->prices, i));
}

/* ---- all of it ---- */

static void
print_heading (const PodMatmulJob *job)
{
  g_autofree char *text = pod_einsum_to_text (&job->einsum, &job->mesh);
  g_autofree char *mesh = pod_array_mesh_to_text (&job->mesh);
  g_autofree char *placement = NULL;

  printf ("%s\n", text);
  if (job->topology == NULL)
    {
      if (job->mesh.n_axes > 0)
        printf ("mesh %s\n", mesh);
      return;
    }
  placement = pod_array_mesh_placement_text (&job->mesh);
  printf ("%s, %s", job->topology->name, pod_fidelity_name (job->fidelity));
  if (job->mesh.n_axes > 0)
    printf ("; mesh %s, placed %s", mesh, placement);
  printf ("\n");
}

void
pod_matmul_print (const PodMatmulJob *job)
{
  print_heading (job);
  print_arrays (job);
  if (job->einsum.is_matmul)
    {
      if (job->mesh.n_axes > 0)
        print_cases (job);
      print_strategies (job);
      print_best (job);
      if (job->options.is_explained)
        print_explanation (job);
    }
  else if (job->topology != NULL)
    {
      g_autofree char *time = pod_format_seconds (job->read_s);

      printf ("\n%s to read a device's part from its memory\n", time);
    }
  for (char **override = job->options.overrides; override != NULL && *override != NULL; override++)
    printf ("set: %s\n", *override);
  for (unsigned i = 0; i < job->assumptions->len; i++)
    printf ("assumed: %s\n", (const char *) job->assumptions->pdata[i]);
}
