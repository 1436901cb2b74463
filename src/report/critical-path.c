#include "report/timeline-private.h"

/* From the end of the step back to its start: what ended last, what released it, and so on. */

/* By span: the send whose message it receives; POD_NO_SPAN. Returns: (transfer full) */
static uint32_t *
senders_of (const PodTimeline *timeline)
{
  uint32_t *senders = g_new (uint32_t, timeline->spans->len + 1);

  for (guint i = 0; i < timeline->spans->len; i++)
    senders[i] = POD_NO_SPAN;
  for (guint i = 0; i < timeline->flows->len; i++)
    {
      const PodFlow *flow = &g_array_index (timeline->flows, PodFlow, i);

      senders[flow->to_span] = flow->from_span;
    }
  return senders;
}

/* The last span to end of @rank_index; of two, the one that started later. POD_NO_SPAN: it has
 * none. */
static uint32_t
last_span (const PodTimeline *timeline, guint rank_index)
{
  const PodSpan *last = NULL;
  uint32_t index = POD_NO_SPAN;

  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);

      if (span->lane / timeline->n_streams != rank_index)
        continue;
      if (last == NULL || span->end_ps > last->end_ps
          || (span->end_ps == last->end_ps && span->start_ps > last->start_ps))
        {
          last = span;
          index = i;
        }
    }
  return index;
}

/* What @span had to wait for last: its sender, when that came later than itself, else what released
 * it. */
static uint32_t
cause_of (const PodSpan *span, uint32_t sender)
{
  return sender != POD_NO_SPAN && span->arrive_ps < span->start_ps ? sender : span->released_by;
}

static void
reverse (GArray *steps)
{
  for (guint i = 0; i < steps->len / 2; i++)
    {
      PodPathStep *a = &g_array_index (steps, PodPathStep, i);
      PodPathStep *b = &g_array_index (steps, PodPathStep, steps->len - 1 - i);
      const PodPathStep held = *a;

      *a = *b;
      *b = held;
    }
}

GArray *
pod_report_critical_path (const PodTimeline *timeline, guint rank_index)
{
  GArray *steps = g_array_new (FALSE, FALSE, sizeof (PodPathStep));
  g_autofree uint32_t *senders = senders_of (timeline);
  uint32_t at = last_span (timeline, rank_index);
  int64_t end_ps = timeline->end_ps;

  /* Each step goes back in time or, at one instant, to another span: no more steps than spans */
  for (guint n = 0; at != POD_NO_SPAN && n < timeline->spans->len; n++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, at);
      const uint32_t before = cause_of (span, senders[at]);
      const int64_t start_ps = MIN (span->start_ps, end_ps);
      const int64_t free_ps
          = before == POD_NO_SPAN ? 0 : g_array_index (timeline->spans, PodSpan, before).end_ps;
      const PodPathStep step = { .span = at,
                                 .wait_ps = start_ps - MIN (free_ps, start_ps),
                                 .work_ps = MIN (span->end_ps, end_ps) - start_ps,
                                 .after_ps = end_ps - MIN (span->end_ps, end_ps) };

      g_array_append_val (steps, step);
      end_ps = start_ps - step.wait_ps;
      at = before;
    }
  if (steps->len > 0) /* a walk that was cut: the rest belongs to what it stopped at */
    g_array_index (steps, PodPathStep, steps->len - 1).wait_ps += end_ps;
  reverse (steps);
  return steps;
}
