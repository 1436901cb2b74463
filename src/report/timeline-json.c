#include "report/timeline-private.h"

#include "base/json.h"
#include "base/units.h"

enum
{
  MAX_SLICES = 120000, /* of a page: some 20 bytes each */
  MAX_RANKS = 32,
};

/* A lane that is shown while its slices are written. */
typedef struct
{
  GString *text;
  int64_t end; /* of the last slice, in units */
  uint32_t n_slices;
  uint32_t index; /* among those with slices */
} Lane;

typedef struct
{
  const PodTimeline *timeline;
  bool *is_shown;     /* by rank */
  int64_t unit_ps;    /* of the page's times */
  uint64_t n_left;    /* slices that still fit */
  Lane *lanes;        /* by lane of the timeline */
  uint32_t *slice_at; /* by span: place in its lane; POD_NO_SPAN: not shown */
  uint32_t *op_at;    /* by op: place among those that are used; POD_NO_SPAN: not yet */
  GArray *ops;        /* (element-type uint32_t) used */
} Writer;

guint
pod_report_rank_index (const PodTimeline *timeline, uint32_t rank)
{
  int64_t last_ps = -1;
  guint last = 0;

  for (guint r = 0; r < timeline->ranks->len; r++)
    if (g_array_index (timeline->ranks, PodTimelineRank, r).rank == rank)
      return r;
  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);

      if (span->end_ps > last_ps)
        {
          last_ps = span->end_ps;
          last = span->lane / timeline->n_streams;
        }
    }
  return last;
}

/* -- what is shown ----------------------------------------------------------------------------- */

/* Marks whole ranks, @first before the others. */
static void
choose_ranks (Writer *writer, guint first, PodTimelineShown *out)
{
  const PodTimeline *timeline = writer->timeline;
  g_autofree uint64_t *n_slices = g_new0 (uint64_t, timeline->ranks->len + 1);
  uint64_t n_left = MAX_SLICES;

  for (guint i = 0; i < timeline->spans->len; i++)
    n_slices[g_array_index (timeline->spans, PodSpan, i).lane / timeline->n_streams]++;
  for (guint i = 0; i < timeline->ranks->len && out->n_ranks_shown < MAX_RANKS; i++)
    {
      const guint r = i == 0 ? first : i <= first ? i - 1 : i;

      if (i > 0 && n_slices[r] > n_left)
        continue;
      writer->is_shown[r] = true;
      out->n_ranks_shown++;
      n_left -= MIN (n_slices[r], n_left);
    }
}

/* -- slices ------------------------------------------------------------------------------------ */

static int64_t
to_unit (const Writer *writer, int64_t ps)
{
  return (ps + writer->unit_ps / 2) / writer->unit_ps;
}

static uint32_t
use_op (Writer *writer, uint32_t op)
{
  if (writer->op_at[op] == POD_NO_SPAN)
    {
      writer->op_at[op] = writer->ops->len;
      g_array_append_val (writer->ops, op);
    }
  return writer->op_at[op];
}

/* Five numbers: op, gap since the lane's last end, duration, wait before it, microbatch. */
static void
write_slice (Writer *writer, guint index)
{
  const PodSpan *span = &g_array_index (writer->timeline->spans, PodSpan, index);
  const PodCategory category
      = g_array_index (writer->timeline->ops, PodTimelineOp, span->op).category;
  Lane *lane = &writer->lanes[span->lane];
  const int64_t start = to_unit (writer, span->start_ps);
  const int64_t end = to_unit (writer, span->end_ps);
  const bool can_wait = category == POD_CATEGORY_COMM || category == POD_CATEGORY_P2P;
  const int64_t wait
      = can_wait ? start - MIN (start, MAX (to_unit (writer, span->arrive_ps), lane->end)) : 0;

  if (lane->text == NULL)
    lane->text = g_string_new (NULL);
  g_string_append_printf (lane->text,
                          "%s%u,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%d",
                          lane->n_slices > 0 ? "," : "", use_op (writer, span->op),
                          start - lane->end, end - start, wait, span->microbatch);
  writer->slice_at[index] = lane->n_slices++;
  lane->end = end;
}

static void
write_slices (Writer *writer)
{
  for (guint i = 0; i < writer->timeline->spans->len; i++)
    {
      const uint32_t lane = g_array_index (writer->timeline->spans, PodSpan, i).lane;

      writer->slice_at[i] = POD_NO_SPAN;
      if (!writer->is_shown[lane / writer->timeline->n_streams] || writer->n_left == 0)
        continue;
      write_slice (writer, i);
      writer->n_left--;
    }
}

/* -- the rest ---------------------------------------------------------------------------------- */

static void
append_number (GString *out, const char *key, double value)
{
  g_autofree char *number = pod_format_double (value);

  if (value != 0)
    g_string_append_printf (out, ",\"%s\":%s", key, number);
}

static void
append_text (GString *out, const char *key, const char *text)
{
  if (text == NULL)
    return;
  g_string_append_printf (out, ",\"%s\":", key);
  pod_json_append_string (out, text);
}

static void
append_ops (GString *out, const Writer *writer)
{
  g_string_append (out, ",\n\"ops\":[");
  for (guint i = 0; i < writer->ops->len; i++)
    {
      const PodTimelineOp *op = &g_array_index (writer->timeline->ops, PodTimelineOp,
                                                g_array_index (writer->ops, uint32_t, i));

      g_string_append_printf (out, "%s\n{\"category\":\"%s\",\"layer\":%d", i > 0 ? "," : "",
                              pod_category_name (op->category), op->layer);
      append_text (out, "name", op->name);
      append_text (out, "axis", op->axis);
      append_text (out, "detail", op->detail);
      append_number (out, "flops", op->flops);
      append_number (out, "bytes", op->bytes);
      g_string_append_c (out, '}');
    }
  g_string_append_c (out, ']');
}

static void
append_lanes (GString *out, Writer *writer)
{
  const PodTimeline *timeline = writer->timeline;
  const size_t n_lanes = (size_t) timeline->ranks->len * timeline->n_streams;
  uint32_t n = 0;

  g_string_append (out, ",\n\"lanes\":[");
  for (size_t l = 0; l < n_lanes; l++)
    {
      Lane *lane = &writer->lanes[l];

      if (lane->text == NULL)
        continue;
      lane->index = n++;
      g_string_append_printf (out, "%s\n{\"rank\":%u,\"stream\":", lane->index > 0 ? "," : "",
                              (unsigned) (l / timeline->n_streams));
      pod_json_append_string (out, timeline->stream_names[l % timeline->n_streams]);
      g_string_append_printf (out, ",\"slices\":[%s]}", lane->text->str);
    }
  g_string_append_c (out, ']');
}

static void
append_ranks (GString *out, const PodTimeline *timeline)
{
  g_string_append (out, ",\n\"ranks\":[");
  for (guint r = 0; r < timeline->ranks->len; r++)
    {
      if (r > 0)
        g_string_append_c (out, ',');
      pod_json_append_string (out, g_array_index (timeline->ranks, PodTimelineRank, r).name);
    }
  g_string_append_c (out, ']');
}

/* Pairs: lane and slice. */
static void
append_path (GString *out, const Writer *writer, const GArray *path)
{
  bool has_one = false;

  g_string_append (out, ",\n\"critical\":[");
  for (guint i = 0; i < path->len; i++)
    {
      const PodPathStep *step = &g_array_index (path, PodPathStep, i);
      const uint32_t lane = g_array_index (writer->timeline->spans, PodSpan, step->span).lane;

      if (step->work_ps <= 0 || writer->slice_at[step->span] == POD_NO_SPAN)
        continue;
      g_string_append_printf (out, "%s%u,%u", has_one ? "," : "", writer->lanes[lane].index,
                              writer->slice_at[step->span]);
      has_one = true;
    }
  g_string_append (out, "]}\n");
}

static char *
write_all (Writer *writer, const GArray *path)
{
  const PodTimeline *timeline = writer->timeline;
  g_autofree char *unit = pod_format_double ((double) writer->unit_ps / 1e12);
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < timeline->ops->len; i++)
    writer->op_at[i] = POD_NO_SPAN;
  write_slices (writer);
  g_string_append_printf (out, "{\"unit_s\":%s,\"end\":%" G_GINT64_FORMAT, unit,
                          to_unit (writer, timeline->end_ps));
  append_ranks (out, timeline);
  append_ops (out, writer);
  append_lanes (out, writer);
  append_path (out, writer, path);
  return g_string_free (out, FALSE);
}

char *
pod_report_timeline_json (const PodTimeline *timeline, guint rank_index, const GArray *path,
                          PodTimelineShown *out_shown)
{
  const size_t n_lanes = (size_t) timeline->ranks->len * timeline->n_streams;
  g_autofree bool *is_shown = g_new0 (bool, timeline->ranks->len + 1);
  g_autofree Lane *lanes = g_new0 (Lane, n_lanes + 1);
  g_autofree uint32_t *slice_at = g_new (uint32_t, timeline->spans->len + 1);
  g_autofree uint32_t *op_at = g_new (uint32_t, timeline->ops->len + 1);
  g_autoptr (GArray) ops = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  /* Picoseconds where a nanosecond would show; both ends of a slice are rounded alike */
  Writer writer = { .timeline = timeline,
                    .is_shown = is_shown,
                    .unit_ps = timeline->end_ps > 10000000 ? 1000 : 1,
                    .n_left = MAX_SLICES,
                    .lanes = lanes,
                    .slice_at = slice_at,
                    .op_at = op_at,
                    .ops = ops };
  char *json;

  *out_shown
      = (PodTimelineShown){ .n_ranks = timeline->ranks->len, .n_slices = timeline->spans->len };
  choose_ranks (&writer, rank_index, out_shown);
  json = write_all (&writer, path);
  out_shown->n_slices_shown = MAX_SLICES - writer.n_left;
  for (size_t l = 0; l < n_lanes; l++)
    if (lanes[l].text != NULL)
      g_string_free (lanes[l].text, TRUE);
  return json;
}
