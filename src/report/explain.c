#include "report/report-private.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"

/* `--explain`: which kernels and collectives take the time, and what decided each. */

/* A row of either table: its total orders it, its words stand under it. */
typedef struct
{
  double total_s;
  guint index;
} Rank;

static gint
compare_ranks (gconstpointer a, gconstpointer b)
{
  const Rank *x = a;
  const Rank *y = b;

  if (x->total_s != y->total_s)
    return x->total_s > y->total_s ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* Under each row of @table its line of @words. */
static void
append_with_words (GString *out, const PodTable *table, const GPtrArray *words)
{
  g_autofree char *text = pod_table_to_text (table);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);

  for (guint i = 0; lines[i] != NULL && *lines[i] != '\0'; i++)
    {
      g_string_append_printf (out, "%s\n", lines[i]);
      if (i > 0 && i <= words->len)
        g_string_append_printf (out, "    %s\n", (const char *) words->pdata[i - 1]);
    }
}

/* -- kernels ----------------------------------------------------------------------------------- */

static const char *
bound_name (PodBound bound)
{
  static const char *const names[] = {
    [POD_BOUND_COMPUTE] = "compute", [POD_BOUND_HBM] = "hbm", [POD_BOUND_OVERHEAD] = "overhead"
  };

  return names[bound];
}

/* How far padding and the last wave carry the FLOP time beyond the steady state. */
static void
append_ratio (GString *words, const char *what, double ratio)
{
  g_autofree char *text = pod_report_fixed (ratio, 3);

  if (ratio > 1.0005)
    g_string_append_printf (words, ", %s x%s", what, text);
}

static void
append_tiles (GString *words, const PodKernelTime *time)
{
  g_autofree char *waves = pod_format_count (time->waves);

  if (time->waves > 0)
    g_string_append_printf (words, ", %s waves", waves);
  if (time->tile_m > 0 && time->tile_n > 0)
    g_string_append_printf (words, " of %ux%u tiles", time->tile_m, time->tile_n);
  else if (time->tile_m > 0)
    g_string_append_printf (words, " of blocks of %u queries", time->tile_m);
  if (time->n_splits > 1)
    g_string_append_printf (words, ", %u blocks to a tile", time->n_splits);
}

/* What the FLOP side says. */
static void
append_flops (GString *words, const PodKernel *kernel, const PodKernelTime *time)
{
  g_autofree char *flops = pod_format_flops (kernel->flops);
  g_autofree char *peak = pod_format_flops (time->peak_flops_per_s);
  g_autofree char *steady = pod_report_percent (time->efficiency);
  g_autofree char *reached
      = pod_report_percent (kernel->flops / time->time_s / time->peak_flops_per_s);

  g_string_append_printf (words, "%s at %s of %s/s: steady %s", flops, reached, peak, steady);
  append_ratio (words, "padding", time->padding_ratio);
  append_ratio (words, "last wave", time->wave_ratio);
  append_tiles (words, time);
}

/* What decided a kernel's time: the side that does first, then how the sides add up. Returns:
 * (transfer full) */
static char *
kernel_words (const PodKernel *kernel, const PodKernelTime *time)
{
  const double bytes = kernel->read_bytes + kernel->write_bytes;
  g_autofree char *size = pod_format_bytes (bytes, false);
  g_autofree char *rate = pod_format_bytes_per_s (time->time_s > 0 ? bytes / time->time_s : 0);
  g_autofree char *flop_time = pod_format_seconds (time->flop_s);
  g_autofree char *memory_time = pod_format_seconds (time->memory_s);
  g_autofree char *overhead = pod_format_seconds (time->overhead_s);
  GString *words = g_string_new (NULL);

  if (time->bound == POD_BOUND_COMPUTE && time->time_s > 0 && time->peak_flops_per_s > 0)
    append_flops (words, kernel, time);
  else
    g_string_append_printf (words, "%s of HBM traffic at %s", size, rate);
  if (time->flop_s > 0)
    g_string_append_printf (words, "; FLOPs %s, HBM %s", flop_time, memory_time);
  if (time->overhead_s > 0)
    g_string_append_printf (words, "; overhead %s", overhead);
  return g_string_free (words, FALSE);
}

PodTable *
pod_report_kernels (const PodExecResult *exec, GPtrArray *words)
{
  const double time_s = (double) exec->time_ps / 1e12;
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (Rank));
  PodTable *table = pod_table_new ((const char *const[]){ "kernel", ">total", ">share", ">calls",
                                                          ">each", "bound", "shape", NULL });

  for (guint i = 0; i < exec->kernels->len; i++)
    {
      const PodKernelUse *use = &g_array_index (exec->kernels, PodKernelUse, i);
      Rank rank = { .total_s = use->time.time_s * (double) use->n_calls, .index = i };

      if (use->n_calls > 0)
        g_array_append_val (order, rank);
    }
  g_array_sort (order, compare_ranks);
  for (guint i = 0; i < order->len; i++)
    {
      const Rank *rank = &g_array_index (order, Rank, i);
      const PodKernelUse *use = &g_array_index (exec->kernels, PodKernelUse, rank->index);
      g_autofree char *total = pod_format_seconds (rank->total_s);
      g_autofree char *share = pod_report_percent (time_s > 0 ? rank->total_s / time_s : 0);
      g_autofree char *calls = pod_report_grouped ((double) use->n_calls);
      g_autofree char *each = pod_format_seconds (use->time.time_s);
      g_autofree char *detail = use->op != NULL ? pod_op_detail (use->op, &use->kernel) : NULL;

      pod_table_add_row (table, (const char *const[]){
                                    use->op != NULL ? use->op->name : "?",
                                    total, share, calls, each, bound_name (use->time.bound),
                                    detail != NULL ? detail : "" });
      g_ptr_array_add (words, kernel_words (&use->kernel, &use->time));
    }
  return table;
}

/* -- losses ------------------------------------------------------------------------------------ */

/* What the step loses against kernels that run alone, by cause. */
static void
append_losses (GString *out, const PodExecResult *exec)
{
  static const char *const causes[POD_N_LOSSES] = {
    [POD_LOSS_CLOCK] = "the power limit lowers the clock of matrix units",
    [POD_LOSS_SPREAD] = "the slowest of the chips sets the pace",
    [POD_LOSS_ATTENTION] = "the framework's attention kernels are others than the chip file's",
    [POD_LOSS_ELEMENTWISE] = "element-wise passes are not fused",
    [POD_LOSS_HOST] = "the device waits for the host to launch",
  };
  const double time_s = (double) exec->time_ps / 1e12;
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){ "loss", ">total", ">share", "cause", NULL });
  unsigned n = 0;

  for (unsigned loss = 0; loss < POD_N_LOSSES; loss++)
    {
      g_autofree char *total = pod_format_seconds (exec->losses_s[loss]);
      g_autofree char *share = pod_report_percent (time_s > 0 ? exec->losses_s[loss] / time_s : 0);

      if (exec->losses_s[loss] == 0)
        continue;
      pod_table_add_row (table, (const char *const[]){ pod_loss_names[loss], total, share, causes[loss] });
      n++;
    }
  if (n == 0)
    return;
  g_autofree char *text = pod_table_to_text (table);

  g_string_append_printf (out, "\nlosses: parts of the critical rank's kernels, against kernels that run alone\n%s", text);
}

/* -- collectives ------------------------------------------------------------------------------- */

PodTable *
pod_report_collectives (const PodExecResult *exec, GPtrArray *words)
{
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (Rank));
  PodTable *table
      = pod_table_new ((const char *const[]){ "group", "axis", "kind", "algorithm", ">ranks",
                                              ">bytes", ">calls", ">alone", ">total", NULL });

  for (guint i = 0; i < exec->collectives->len; i++)
    {
      const PodCollectiveUse *use = &g_array_index (exec->collectives, PodCollectiveUse, i);
      Rank rank = { .total_s = use->alone_s * (double) use->n_per_rank, .index = i };

      g_array_append_val (order, rank);
    }
  g_array_sort (order, compare_ranks);
  for (guint i = 0; i < order->len; i++)
    {
      const Rank *rank = &g_array_index (order, Rank, i);
      const PodCollectiveUse *use
          = &g_array_index (exec->collectives, PodCollectiveUse, rank->index);
      g_autofree char *ranks = g_strdup_printf ("%u", use->group_size);
      g_autofree char *bytes = pod_format_bytes ((double) use->bytes, false);
      g_autofree char *calls = pod_report_grouped ((double) use->n_per_rank);
      g_autofree char *alone = pod_format_seconds (use->alone_s);
      g_autofree char *total = pod_format_seconds (rank->total_s);

      pod_table_add_row (table,
                         (const char *const[]){ use->comm, pod_axis_name (use->axis),
                                                pod_collective_name (use->kind), use->algorithm,
                                                ranks, bytes, calls, alone, total });
      g_ptr_array_add (words, g_strdup (use->explain != NULL ? use->explain : ""));
    }
  return table;
}

/* @table is taken. One without rows is left out. */
static void
append_table (GString *out, const char *heading, PodTable *table, const GPtrArray *words)
{
  if (pod_table_n_rows (table) > 0)
    {
      g_string_append_printf (out, "\n%s\n", heading);
      append_with_words (out, table, words);
    }
  pod_table_free (table);
}

char *
pod_report_explain (const PodExecResult *exec)
{
  g_return_val_if_fail (exec != NULL, NULL);

  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  GString *out = g_string_new (NULL);

  append_table (out, "kernels: a step of the rank that runs each most, share of the step",
                pod_report_kernels (exec, words), words);
  g_ptr_array_set_size (words, 0);
  append_losses (out, exec);
  append_table (out, "collectives: alone on an empty network, total = calls x alone, hidden or not",
                pod_report_collectives (exec, words), words);
  return g_string_free (out, FALSE);
}
