#include "report/report-private.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

/* The difference of two results as a person reads it. */

/* A cell: strings bare, numbers as short as they go, "-" where there is none. Returns: (transfer
 * full) */
static char *
cell_text (JsonNode *node)
{
  if (node == NULL || JSON_NODE_HOLDS_NULL (node))
    return g_strdup ("-");
  if (JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == JSON_VALUE_STRING)
    return g_strdup (json_node_get_string (node));
  return pod_json_to_line (node);
}

static void
append_inputs (GString *out, JsonObject *diff)
{
  JsonArray *inputs = pod_report_array (diff, "inputs");
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){ "input", "A", "B", NULL });
  g_autofree char *text = NULL;

  for (guint i = 0; i < json_array_get_length (inputs); i++)
    {
      JsonObject *entry = json_array_get_object_element (inputs, i);
      g_autofree char *a = cell_text (json_object_get_member (entry, "a"));
      g_autofree char *b = cell_text (json_object_get_member (entry, "b"));

      pod_table_add_row (table, (const char *const[]){ pod_report_string (entry, "key"), a, b });
    }
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s",
                          json_array_get_length (inputs) > 0 ? text : "the inputs are equal\n");
}

/* -- in one sentence --------------------------------------------------------------------------- */

/* How a quantity is written in the sentence: with its sign when it is a difference. */
typedef struct
{
  const char *path;   /* "time" */
  const char *suffix; /* "s" */
  const char *name;
} Quantity;

static char *
quantity_text (const Quantity *quantity, double value)
{
  return *quantity->suffix == 's' ? pod_format_seconds (value) : pod_format_bytes (value, false);
}

static double
amount_of (const Quantity *quantity, JsonObject *entry, const char *what)
{
  g_autofree char *key = g_strdup_printf ("%s_%s", what, quantity->suffix);

  return pod_report_number (entry, key);
}

typedef struct
{
  const char *name;
  double difference;
} Change;

static gint
compare_changes (gconstpointer a, gconstpointer b)
{
  const Change *x = a;
  const Change *y = b;

  if (fabs (x->difference) != fabs (y->difference))
    return fabs (x->difference) > fabs (y->difference) ? -1 : 1;
  return strcmp (x->name, y->name);
}

/* The terms that changed by a tenth or more of all change, the largest first. */
static void
append_reasons (GString *out, const Quantity *quantity, JsonArray *terms)
{
  g_autoptr (GArray) changes = g_array_new (FALSE, FALSE, sizeof (Change));
  double all = 0;

  for (guint i = 0; i < json_array_get_length (terms); i++)
    {
      JsonObject *entry = json_array_get_object_element (terms, i);
      Change change = { .name = pod_report_string (entry, "term"),
                        .difference = amount_of (quantity, entry, "difference") };

      all += fabs (change.difference);
      g_array_append_val (changes, change);
    }
  g_array_sort (changes, compare_changes);
  for (guint i = 0; i < changes->len; i++)
    {
      const Change *change = &g_array_index (changes, Change, i);
      g_autofree char *size = quantity_text (quantity, fabs (change->difference));

      if (all == 0 || fabs (change->difference) < all / 10)
        break;
      g_string_append_printf (out, "%s %s %c%s", i == 0 ? ":" : ",", change->name,
                              change->difference > 0 ? '+' : '-', size);
    }
}

static void
append_sentence (GString *out, const Quantity *quantity, JsonObject *diff)
{
  JsonObject *object = pod_report_object (diff, quantity->path);
  const double before = amount_of (quantity, object, "a");
  const double difference = amount_of (quantity, object, "difference");
  g_autofree char *a = quantity_text (quantity, before);
  g_autofree char *b = quantity_text (quantity, amount_of (quantity, object, "b"));
  g_autofree char *percent = pod_report_percent (before > 0 ? fabs (difference) / before : 0);

  if (difference == 0)
    {
      g_string_append_printf (out, "%s %s in both\n", quantity->name, a);
      return;
    }
  g_string_append_printf (out, "%s %s -> %s, %c%s", quantity->name, a, b,
                          difference > 0 ? '+' : '-', percent);
  append_reasons (out, quantity, pod_report_array (object, "terms"));
  g_string_append_c (out, '\n');
}

static void
append_sentences (GString *out, JsonObject *diff)
{
  static const Quantity quantities[]
      = { { "time", "s", "step   " }, { "memory", "bytes", "memory " } };
  static const char *const sides[] = { "A", "B" };
  static const char *const paths[] = { "a.file", "b.file" };

  for (unsigned i = 0; i < 2; i++)
    if (pod_report_string (diff, paths[i]) != NULL)
      g_string_append_printf (out, "%-7s %s\n", sides[i], pod_report_string (diff, paths[i]));
  for (unsigned i = 0; i < G_N_ELEMENTS (quantities); i++)
    append_sentence (out, &quantities[i], diff);
}

/* -- tables of terms --------------------------------------------------------------------------- */

typedef struct
{
  PodTable *table;
  PodReportUnit unit;
  const char *suffix; /* "s" or "bytes" */
  unsigned n_decimals;
} TermTable;

static double
amount (const TermTable *terms, JsonObject *entry, const char *what)
{
  g_autofree char *key = g_strdup_printf ("%s_%s", what, terms->suffix);

  return pod_report_number (entry, key);
}

static char *
signed_text (double value, char *text)
{
  g_autofree char *rest = text;

  return g_strconcat (value > 0 ? "+" : "", rest, NULL);
}

static void
add_row (const TermTable *terms, const char *name, JsonObject *entry, const char *share)
{
  const double difference = amount (terms, entry, "difference");
  g_autofree char *a
      = pod_report_in_unit (amount (terms, entry, "a"), terms->unit, terms->n_decimals);
  g_autofree char *b
      = pod_report_in_unit (amount (terms, entry, "b"), terms->unit, terms->n_decimals);
  g_autofree char *change
      = signed_text (difference, pod_report_in_unit (difference, terms->unit, terms->n_decimals));

  pod_table_add_row (terms->table, (const char *const[]){ name, a, b, change, share });
}

static void
add_rows (const TermTable *terms, JsonArray *array, const char *prefix, const char *note)
{
  for (guint i = 0; i < json_array_get_length (array); i++)
    {
      JsonObject *entry = json_array_get_object_element (array, i);
      g_autofree char *name = g_strconcat (prefix, pod_report_string (entry, "term"), NULL);
      g_autofree char *share = json_object_has_member (entry, "share_ratio")
                                   ? pod_report_percent (pod_report_number (entry, "share_ratio"))
                                   : g_strdup (note);

      if (amount (terms, entry, "a") != 0 || amount (terms, entry, "b") != 0)
        add_row (terms, name, entry, share);
    }
}

static void
append_time (GString *out, JsonObject *diff)
{
  JsonObject *time = pod_report_object (diff, "time");
  g_autoptr (PodTable) table = pod_table_new (
      (const char *const[]){ "time of a step", ">A", ">B", ">difference", ">share", NULL });
  const double largest_s = MAX (pod_report_number (time, "a_s"), pod_report_number (time, "b_s"));
  TermTable terms = {
    .table = table, .suffix = "s", .n_decimals = 3, .unit = pod_report_time_unit (largest_s)
  };
  g_autofree char *text = NULL;

  add_rows (&terms, pod_report_array (time, "terms"), "", "");
  add_row (&terms, "step", time, "");
  add_rows (&terms, pod_report_array (time, "in_compute"), "in compute: ", "");
  add_rows (&terms, pod_report_array (time, "comm"), "hidden or not: ", "");
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s", text);
}

static void
append_memory (GString *out, JsonObject *diff)
{
  JsonObject *memory = pod_report_object (diff, "memory");
  g_autoptr (PodTable) table = pod_table_new (
      (const char *const[]){ "memory at the peak", ">A", ">B", ">difference", ">share", NULL });
  const double largest
      = MAX (pod_report_number (memory, "a_bytes"), pod_report_number (memory, "b_bytes"));
  TermTable terms = {
    .table = table, .suffix = "bytes", .n_decimals = 3, .unit = pod_report_bytes_unit (largest)
  };
  g_autofree char *text = NULL;

  add_rows (&terms, pod_report_array (memory, "terms"), "", "");
  add_row (&terms, "peak", memory, "");
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s", text);
}

/* -- outcomes and lists ------------------------------------------------------------------------ */

typedef enum
{
  SHOWN_AS_COUNT,
  SHOWN_AS_PERCENT,
  SHOWN_AS_IT_IS,
} Shown;

/* Returns: (transfer full) */
static char *
outcome_text (JsonObject *side, const char *key, Shown shown)
{
  JsonNode *node = json_object_get_member (side, key);

  if (node == NULL || shown == SHOWN_AS_IT_IS)
    return cell_text (node);
  if (shown == SHOWN_AS_PERCENT)
    return pod_report_percent (pod_report_node_number (node));
  /* Days and dollars may be few, and then their decimals count */
  if (pod_report_node_number (node) < 1000)
    return pod_format_count (pod_report_node_number (node));
  return pod_report_grouped (pod_report_node_number (node));
}

static void
append_outcomes (GString *out, JsonObject *diff)
{
  static const struct
  {
    const char *name;
    const char *key;
    Shown shown;
  } rows[] = {
    { "bound by", "bound", SHOWN_AS_IT_IS },
    { "tokens/s", "tokens_per_s", SHOWN_AS_COUNT },
    { "tokens/s per chip", "tokens_per_s_per_chip", SHOWN_AS_COUNT },
    { "MFU", "mfu", SHOWN_AS_PERCENT },
    { "HFU", "hfu", SHOWN_AS_PERCENT },
    { "fits in memory", "fits", SHOWN_AS_IT_IS },
    { "training, days", "days", SHOWN_AS_COUNT },
    { "training, USD", "cost_usd", SHOWN_AS_COUNT },
  };
  JsonObject *a = pod_report_object (diff, "a");
  JsonObject *b = pod_report_object (diff, "b");
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){ "outcome", ">A", ">B", NULL });
  g_autofree char *text = NULL;

  for (unsigned i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *left = outcome_text (a, rows[i].key, rows[i].shown);
      g_autofree char *right = outcome_text (b, rows[i].key, rows[i].shown);

      if (json_object_has_member (a, rows[i].key) || json_object_has_member (b, rows[i].key))
        pod_table_add_row (table, (const char *const[]){ rows[i].name, left, right });
    }
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s", text);
}

static void
append_only (GString *out, JsonObject *diff, const char *name)
{
  static const char *const sides[] = { "A", "B" };
  static const char *const keys[] = { "only_a", "only_b" };
  JsonObject *lists = pod_report_object (diff, name);

  for (unsigned s = 0; s < 2; s++)
    {
      JsonArray *array = pod_report_array (lists, keys[s]);

      if (json_array_get_length (array) > 0)
        g_string_append_printf (out, "\n%s of %s alone\n", name, sides[s]);
      for (guint i = 0; i < json_array_get_length (array); i++)
        g_string_append_printf (out, "- %s\n", json_array_get_string_element (array, i));
    }
}

char *
pod_report_diff_to_text (JsonObject *diff)
{
  g_return_val_if_fail (diff != NULL, NULL);

  GString *out = g_string_new (NULL);

  append_sentences (out, diff);
  append_inputs (out, diff);
  append_time (out, diff);
  append_memory (out, diff);
  append_outcomes (out, diff);
  append_only (out, diff, "assumptions");
  append_only (out, diff, "warnings");
  return g_string_free (out, FALSE);
}
