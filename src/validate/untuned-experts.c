#include "validate/untuned-experts.h"

#include <math.h>

typedef struct
{
  PodKernelVerdict *verdict;
  double log_ratio; /* of measured to predicted */
} Entry;

typedef struct
{
  guint first; /* of the entries, which stand by ratio */
  guint n;
} Case;

static bool
is_of_experts (const PodKernelSample *sample)
{
  return sample->kind == POD_SAMPLE_MOE || sample->kind == POD_SAMPLE_MOE_SKEWED;
}

/* By table and shape: all numbers but that of the tokens. */
static int
compare_shapes (const PodKernelVerdict *a, const PodKernelVerdict *b)
{
  static const unsigned numbers[] = { POD_MOE_HIDDEN, POD_MOE_FFN, POD_MOE_TOP_K, POD_MOE_EXPERTS, POD_MOE_TP, POD_MOE_EP };

  if (a->input != b->input)
    return a->input < b->input ? -1 : 1;
  for (unsigned i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (a->sample.numbers[numbers[i]] != b->sample.numbers[numbers[i]])
      return a->sample.numbers[numbers[i]] < b->sample.numbers[numbers[i]] ? -1 : 1;
  return 0;
}

static int
compare_cases (const PodKernelVerdict *a, const PodKernelVerdict *b)
{
  const int shapes = compare_shapes (a, b);

  return shapes != 0 ? shapes : (a->sample.power > b->sample.power) - (a->sample.power < b->sample.power);
}

static int
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *x = a, *y = b;
  const int cases = compare_cases (x->verdict, y->verdict);

  return cases != 0 ? cases : (x->log_ratio > y->log_ratio) - (x->log_ratio < y->log_ratio);
}

/* Returns: (transfer full) (element-type Entry) */
static GArray *
list_entries (GArray *verdicts)
{
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (Entry));

  for (guint i = 0; i < verdicts->len; i++)
    {
      PodKernelVerdict *verdict = &g_array_index (verdicts, PodKernelVerdict, i);
      const Entry entry = { verdict, log (verdict->sample.time_s / verdict->predicted_s) };

      if (is_of_experts (&verdict->sample))
        g_array_append_val (entries, entry);
    }
  g_array_sort (entries, compare_entries);
  return entries;
}

/* Returns: (transfer full) (element-type Case) */
static GArray *
list_cases (const GArray *entries)
{
  GArray *cases = g_array_new (FALSE, FALSE, sizeof (Case));

  for (guint i = 0; i < entries->len; i++)
    {
      const Case next = { i, 1 };

      if (cases->len > 0 && compare_cases (g_array_index (entries, Entry, i - 1).verdict, g_array_index (entries, Entry, i).verdict) == 0)
        g_array_index (cases, Case, cases->len - 1).n++;
      else
        g_array_append_val (cases, next);
    }
  return cases;
}

static double
median_of (const GArray *entries, const Case *one)
{
  return g_array_index (entries, Entry, one->first + one->n / 2).log_ratio;
}

/* The cases from @first to @end are of one shape. Returns how many of them are marked. */
static unsigned
mark_shape (const GArray *entries, const GArray *cases, guint first, guint end)
{
  double least = INFINITY;
  unsigned n = 0;

  for (guint c = first; c < end; c++)
    least = MIN (least, median_of (entries, &g_array_index (cases, Case, c)));
  for (guint c = first; c < end; c++)
    {
      const Case *one = &g_array_index (cases, Case, c);

      if (median_of (entries, one) <= least + log (POD_UNTUNED_RATIO))
        continue;
      n++;
      for (guint i = 0; i < one->n; i++)
        g_array_index (entries, Entry, one->first + i).verdict->is_untuned = true;
    }
  return n;
}

unsigned
pod_mark_untuned_experts (GArray *verdicts, unsigned *out_n_cases)
{
  g_autoptr (GArray) entries = list_entries (verdicts);
  g_autoptr (GArray) cases = list_cases (entries);
  unsigned n = 0;
  guint first = 0;

  for (guint c = 1; c <= cases->len; c++)
    if (c == cases->len
        || compare_shapes (g_array_index (entries, Entry, g_array_index (cases, Case, first).first).verdict,
                           g_array_index (entries, Entry, g_array_index (cases, Case, c).first).verdict)
               != 0)
      {
        n += mark_shape (entries, cases, first, c);
        first = c;
      }
  *out_n_cases = cases->len;
  return n;
}
