#include "report/plot.h"
#include "report/report-private.h"

#include <string.h>

#include "base/units.h"

/* The pipeline as people draw it: a row for each rank, a box for what one slot of the schedule does
 * for one microbatch, coloured by its kind and the chunk of the model. */

/* One slot, from the first kernel of it to the last. */
typedef struct
{
  guint rank_index;
  uint8_t slot;
  uint8_t chunk;
  int32_t microbatch; /* -1 the optimizer */
  int64_t start_ps;
  int64_t end_ps;
  bool is_upper;      /* shares its time with another: half of the row's height each */
  bool is_lower;
} Box;

/* Kinds in the order of the program's slots, then the optimizer, in colours of the palette; dark for the first chunk, pale for
 * the last. */
#define OPTIMIZER 4

static const struct
{
  const char *name;
  unsigned dark;
  unsigned pale;
} kinds[] = {
  { "forward", 0x0072b2, 0x9fd0ee },            { "backward", 0xd55e00, 0xf8c29b },
  { "gradients of input", 0xe69f00, 0xf7dda6 }, { "gradients of weights", 0x009e73, 0x9adcc8 },
  { "optimizer", 0x555555, 0x555555 },
};

static unsigned
mix (unsigned dark, unsigned pale, double share)
{
  unsigned out = 0;

  for (unsigned shift = 0; shift <= 16; shift += 8)
    {
      double a = dark >> shift & 0xff;
      double b = pale >> shift & 0xff;

      out |= (unsigned) (a + (b - a) * share + 0.5) << shift;
    }
  return out;
}

static unsigned
kind_of (const Box *box)
{
  return box->microbatch < 0 ? OPTIMIZER : box->slot;
}

static bool
is_same (const Box *a, const Box *b)
{
  return a->rank_index == b->rank_index && a->microbatch == b->microbatch
         && (a->microbatch < 0 || (a->slot == b->slot && a->chunk == b->chunk));
}

/* Kernels of a rank come in time order; those of two slots may alternate. */
static void
take_kernel (GArray *boxes, const Box *kernel)
{
  for (guint i = boxes->len; i-- > 0 && boxes->len - i <= 2;)
    {
      Box *box = &g_array_index (boxes, Box, i);

      if (!is_same (box, kernel))
        continue;
      box->end_ps = kernel->end_ps;
      return;
    }
  g_array_append_val (boxes, *kernel);
}

static GArray *
boxes_of (const PodTimeline *timeline, unsigned *out_n_chunks)
{
  GArray *boxes = g_array_new (FALSE, FALSE, sizeof (Box));

  *out_n_chunks = 1;
  for (guint r = 0; r < timeline->ranks->len; r++)
    {
      const guint first = boxes->len;

      for (guint i = 0; i < timeline->spans->len; i++)
        {
          const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);
          const PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, span->op);
          Box kernel = { .rank_index = r,
                         .slot = op->slot,
                         .chunk = op->chunk,
                         .microbatch = span->microbatch,
                         .start_ps = span->start_ps,
                         .end_ps = span->end_ps };

          if (span->lane != r * timeline->n_streams)
            continue;
          take_kernel (boxes, &kernel);
          *out_n_chunks = MAX (*out_n_chunks, op->chunk + 1U);
        }
      for (guint i = first + 1; i < boxes->len; i++)
        {
          Box *before = &g_array_index (boxes, Box, i - 1);
          Box *box = &g_array_index (boxes, Box, i);

          if (box->start_ps < before->end_ps)
            before->is_upper = box->is_lower = true;
        }
    }
  return boxes;
}

/* "row start_s end_s low high colour label" */
static void
append_box (GString *data, const Box *box, unsigned n_chunks, double end_ps)
{
  const double share = n_chunks > 1 ? (double) box->chunk / (n_chunks - 1) : 0.25;
  const unsigned kind = kind_of (box);
  g_autofree char *start = pod_format_double ((double) box->start_ps / 1e12);
  g_autofree char *end = pod_format_double ((double) box->end_ps / 1e12);
  g_autofree char *number = g_strdup_printf ("%d", box->microbatch);
  const bool has_room
      = box->microbatch >= 0
        && (double) (box->end_ps - box->start_ps) / end_ps * 1300 > 7. * (double) strlen (number) + 3;

  g_string_append_printf (data, "%u\t%s\t%s\t%s\t%s\t0x%06x\t%s\t%s\t%u\t0x%06x\n", box->rank_index, start, end,
                          box->is_lower ? "0" : "-0.42", box->is_upper ? "0" : "0.42",
                          mix (kinds[kind].dark, kinds[kind].pale, share), has_room ? number : " ",
                          kinds[kind].name, box->chunk, share > 0.4 && kind != OPTIMIZER ? 0 : 0xffffff);
}

static void
append_legend (GString *script, const GArray *boxes, unsigned n_chunks)
{
  bool is_there[G_N_ELEMENTS (kinds)] = { false };

  for (guint i = 0; i < boxes->len; i++)
    is_there[kind_of (&g_array_index (boxes, Box, i))] = true;
  for (unsigned k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (unsigned c = 0; is_there[k] && c < (k == OPTIMIZER || n_chunks == 1 ? 1 : MIN (n_chunks, 4)); c++)
      {
        const unsigned chunk = n_chunks > 4 ? c * (n_chunks - 1) / 3 : c;
        g_autofree char *which = n_chunks > 1 && k != OPTIMIZER ? g_strdup_printf (" %u", chunk) : g_strdup ("");

        g_string_append_printf (script, ", \\\n     NaN with boxes lc rgb '#%06x' title '%s%s'",
                                mix (kinds[k].dark, kinds[k].pale, n_chunks > 1 ? (double) chunk / (n_chunks - 1) : 0.25),
                                kinds[k].name, which);
      }
}

static void
append_ranks (GString *script, const PodTimeline *timeline)
{
  g_string_append (script, "set ytics (");
  for (guint r = 0; r < timeline->ranks->len; r++)
    {
      const char *name = g_array_index (timeline->ranks, PodTimelineRank, r).name;
      const char *open = strchr (name, '(');
      const char *end = open != NULL ? open + 1 + strcspn (open + 1, ",)") : NULL;
      g_autofree char *stage = open != NULL ? g_strndup (open + 1, (size_t) (end - open - 1)) : g_strdup (name);
      g_autofree char *quoted = pod_report_quoted (stage);

      g_string_append_printf (script, "%s%s %u", r > 0 ? ", " : "", quoted, r);
    }
  g_string_append (script, ")\n");
}

static const char script_text[] = "set style fill solid 1.0 noborder\n"
                                  "set border 1\n"
                                  "set key above horizontal samplen 1.5\n";

bool
pod_report_schedule_plot (JsonObject *result, const PodTimeline *timeline, const char *folder,
                          GError **error)
{
  const PodReportUnit unit = pod_report_time_unit ((double) timeline->end_ps / 1e12);
  const unsigned n_ranks = timeline->ranks->len;
  unsigned n_chunks;
  g_autoptr (GArray) boxes = boxes_of (timeline, &n_chunks);
  g_autoptr (GString) data
      = g_string_new ("row\tstart_s\tend_s\tlow\thigh\tcolour\tmicrobatch\tkind\tchunk\tink\n");
  g_autoptr (GString) script = g_string_new (NULL);
  g_autofree char *title = pod_report_title (result);
  g_autofree char *time = pod_format_seconds ((double) timeline->end_ps / 1e12);
  g_autofree char *scale = pod_format_double (1 / unit.size);
  g_autofree char *right = pod_format_double ((double) timeline->end_ps / 1e12 / unit.size);

  for (guint i = 0; i < boxes->len; i++)
    append_box (data, &g_array_index (boxes, Box, i), n_chunks, (double) MAX (timeline->end_ps, 1));
  g_string_append (script, script_text);
  pod_report_append_title (script, title, "forwards and backwards by microbatch: ", time);
  append_ranks (script, timeline);
  g_string_append_printf (script, "set xlabel 'time (%s)'\nset xrange [0:%s]\nset yrange [%u.6:-0.6]\n",
                          unit.name, right, n_ranks - 1);
  g_string_append_printf (script,
                          "plot 'schedule.tsv' skip 1 using "
                          "($2*%s):1:($2*%s):($3*%s):($1+$4):($1+$5):6 with boxxyerror lc rgb "
                          "variable notitle, \\\n"
                          "     '' skip 1 using (($2+$3)/2*%s):($1+($4+$5)/2):7:10 with labels tc rgb "
                          "variable font ',9' notitle",
                          scale, scale, scale, scale);
  append_legend (script, boxes, n_chunks);
  g_string_append_c (script, '\n');
  return pod_report_plot (&(PodPlot){ "schedule", 1500, 190 + MIN (n_ranks, 64) * 40, data->str,
                                      script->str },
                          folder, error);
}
