#include "report/report-private.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

/* The difference of two results as numbers: inputs that differ, and terms that add up. */

/* -- inputs ------------------------------------------------------------------------------------ */

/* Members of both, those of @a first. (either nullable) Returns: (transfer container) */
static GList *
members_of_both (JsonObject *a, JsonObject *b)
{
  GList *keys = a != NULL ? json_object_get_members (a) : NULL;
  g_autoptr (GList) of_b = b != NULL ? json_object_get_members (b) : NULL;
  GList *more = NULL;

  for (GList *l = of_b; l != NULL; l = l->next)
    if (a == NULL || !json_object_has_member (a, l->data))
      more = g_list_prepend (more, l->data);
  return g_list_concat (keys, g_list_reverse (more));
}

static JsonNode *
member (JsonObject *object, const char *key)
{
  return object != NULL ? json_object_get_member (object, key) : NULL;
}

static JsonObject *
object_of (JsonNode *node)
{
  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

static void
set_copy (JsonObject *entry, const char *key, JsonNode *node)
{
  if (node != NULL)
    json_object_set_member (entry, key, json_node_copy (node));
  else
    json_object_set_null_member (entry, key);
}

static bool
is_same (JsonNode *a, JsonNode *b)
{
  g_autofree char *x = a != NULL ? pod_json_to_line (a) : NULL;
  g_autofree char *y = b != NULL ? pod_json_to_line (b) : NULL;

  return g_strcmp0 (x, y) == 0;
}

/* Below @path what differs between @x and @y, either of which may be absent. */
static void
add_inputs (JsonArray *inputs, const char *path, JsonNode *x, JsonNode *y)
{
  JsonObject *a = object_of (x);
  JsonObject *b = object_of (y);
  g_autoptr (GList) keys = members_of_both (a, b);
  JsonObject *entry;

  for (GList *l = keys; l != NULL; l = l->next)
    {
      g_autofree char *inner = g_strconcat (path, ".", (const char *) l->data, NULL);

      add_inputs (inputs, inner, member (a, l->data), member (b, l->data));
    }
  if (a != NULL || b != NULL || is_same (x, y))
    return;
  entry = json_object_new ();
  pod_result_set_string (entry, "key", path);
  set_copy (entry, "a", x);
  set_copy (entry, "b", y);
  json_array_add_object_element (inputs, entry);
}

/* What a result was made of: text and numbers at its top, the objects that describe the job, and
 * what stands among the outcomes though it was given. */
static void
add_all_inputs (JsonArray *inputs, JsonObject *a, JsonObject *b)
{
  static const char *const given[] = { "topology",
                                       "model",
                                       "batch",
                                       "job",
                                       "options",
                                       "step.flops_convention",
                                       "step.mfu_peak_flops_per_s",
                                       "memory.capacity_bytes",
                                       "memory.reserved_bytes",
                                       "train.tokens",
                                       "train.availability",
                                       "train.usd_per_chip_hour" };
  g_autoptr (GList) keys = members_of_both (a, b);

  for (GList *l = keys; l != NULL; l = l->next)
    {
      JsonNode *x = member (a, l->data);
      JsonNode *y = member (b, l->data);

      if (JSON_NODE_HOLDS_VALUE (x != NULL ? x : y) && strcmp (l->data, "schema_version") != 0)
        add_inputs (inputs, l->data, x, y);
    }
  for (unsigned i = 0; i < G_N_ELEMENTS (given); i++)
    add_inputs (inputs, given[i], pod_report_node (a, given[i]), pod_report_node (b, given[i]));
}

/* -- lists ------------------------------------------------------------------------------------- */

/* The string at @index of a list that may hold anything. (transfer none) (nullable) */
static const char *
string_at (JsonArray *array, guint index)
{
  JsonNode *node = json_array_get_element (array, index);

  return JSON_NODE_HOLDS_VALUE (node) ? json_node_get_string (node) : NULL;
}

/* The strings of list @name that only one result has. */
static void
add_only (JsonObject *out, const char *path, JsonObject *has, JsonObject *lacks, const char *name)
{
  JsonArray *array = pod_report_array (has, name);
  JsonArray *other = pod_report_array (lacks, name);
  JsonArray *only = pod_result_get_array (out, path);
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; other != NULL && i < json_array_get_length (other); i++)
    if (string_at (other, i) != NULL)
      g_hash_table_add (known, (char *) string_at (other, i));
  for (guint i = 0; array != NULL && i < json_array_get_length (array); i++)
    {
      const char *text = string_at (array, i);

      if (text != NULL && !g_hash_table_contains (known, text))
        json_array_add_string_element (only, text);
    }
}

/* -- terms ------------------------------------------------------------------------------------- */

/* A quantity in whole picoseconds or bytes, so that differences add up exactly. */
typedef struct
{
  JsonArray *array;
  const char *unit;  /* "s" */
  const char *whole; /* (nullable) "ps" */
  double per_unit;   /* so many whole ones make a unit */
  int64_t total;
  int64_t left_a; /* of the totals, by no term yet */
  int64_t left_b;
} Terms;

/* A result comes from a file, which may say anything: what does not fit stays at the end of the range. */
static int64_t
minus (int64_t a, int64_t b)
{
  int64_t difference;

  if (!__builtin_sub_overflow (a, b, &difference))
    return difference;
  return b > 0 ? INT64_MIN : INT64_MAX;
}

static void
set_amount (JsonObject *entry, const char *what, const char *unit, double value)
{
  g_autofree char *key = g_strdup_printf ("%s_%s", what, unit);

  pod_result_set_double (entry, key, value);
}

static void
set_amounts (const Terms *terms, JsonObject *entry, int64_t a, int64_t b)
{
  set_amount (entry, "a", terms->unit, (double) a / terms->per_unit);
  set_amount (entry, "b", terms->unit, (double) b / terms->per_unit);
  set_amount (entry, "difference", terms->unit, (double) minus (b, a) / terms->per_unit);
  if (terms->whole != NULL)
    {
      g_autofree char *key = g_strdup_printf ("difference_%s", terms->whole);

      pod_result_set_int (entry, key, minus (b, a));
    }
}

/* Returns: (transfer none) */
static JsonObject *
add_amounts (const Terms *terms, JsonArray *array, const char *name, int64_t a, int64_t b)
{
  JsonObject *entry = json_object_new ();

  pod_result_set_string (entry, "term", name);
  set_amounts (terms, entry, a, b);
  json_array_add_object_element (array, entry);
  return entry;
}

static void
add_term (Terms *terms, const char *name, int64_t a, int64_t b)
{
  JsonObject *entry = add_amounts (terms, terms->array, name, a, b);

  if (terms->total != 0)
    pod_result_set_double (entry, "share_ratio",
                           a != b ? (double) minus (b, a) / (double) terms->total : 0);
  terms->left_a = minus (terms->left_a, a);
  terms->left_b = minus (terms->left_b, b);
}

static void
begin_terms (Terms *terms, JsonObject *out, const char *path, int64_t a, int64_t b)
{
  JsonObject *object = json_object_new ();

  json_object_set_object_member (out, path, object);
  terms->total = minus (b, a);
  terms->left_a = a;
  terms->left_b = b;
  set_amounts (terms, object, a, b);
  if (a != 0)
    pod_result_set_double (object, "ratio", (double) b / (double) a);
  terms->array = pod_result_get_array (object, "terms");
}

/* A result of another version may have terms that this one does not know. */
static void
end_terms (Terms *terms)
{
  if (terms->left_a != 0 || terms->left_b != 0)
    add_term (terms, "other", terms->left_a, terms->left_b);
}

/* Returns: (transfer full) names to terms, both borrowed from @terms */
static GHashTable *
index_terms (const GArray *terms)
{
  GHashTable *index = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = terms->len; i-- > 0;) /* of two of one name the first */
    {
      PodReportTerm *term = &g_array_index (terms, PodReportTerm, i);

      g_hash_table_insert (index, term->name, term);
    }
  return index;
}

/* The terms of @a with those of @b beside them, then what only @b has. */
static void
add_times (Terms *terms, JsonArray *comm, const GArray *a, const GArray *b)
{
  g_autoptr (GHashTable) in_a = index_terms (a);
  g_autoptr (GHashTable) in_b = index_terms (b);

  for (unsigned pass = 0; pass < 2; pass++)
    for (guint i = 0; i < (pass == 0 ? a : b)->len; i++)
      {
        const PodReportTerm *term = &g_array_index (pass == 0 ? a : b, PodReportTerm, i);
        const PodReportTerm *x = g_hash_table_lookup (in_a, term->name);
        const PodReportTerm *y = g_hash_table_lookup (in_b, term->name);

        if (pass == 1 && x != NULL)
          continue;
        add_term (terms, term->name, x != NULL ? x->time_ps : 0, y != NULL ? y->time_ps : 0);
        if (term->axis != NULL)
          add_amounts (terms, comm, term->axis, x != NULL ? x->total_ps : 0,
                       y != NULL ? y->total_ps : 0);
      }
}

static void
add_time_diff (JsonObject *out, JsonObject *a, JsonObject *b)
{
  static const char *const parts[] = { "optimizer", "recompute" };
  g_autoptr (GArray) terms_a = pod_report_terms (a);
  g_autoptr (GArray) terms_b = pod_report_terms (b);
  Terms terms = { .unit = "s", .whole = "ps", .per_unit = 1e12 };
  JsonArray *array;

  begin_terms (&terms, out, "time", pod_report_time_ps (a), pod_report_time_ps (b));
  add_times (&terms, pod_result_get_array (out, "time.comm"), terms_a, terms_b);
  end_terms (&terms);
  array = pod_result_get_array (out, "time.in_compute");
  for (unsigned i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autofree char *path = g_strdup_printf ("step.%s_s", parts[i]);

      add_amounts (&terms, array, parts[i], pod_report_ps (pod_report_number (a, path)),
                   pod_report_ps (pod_report_number (b, path)));
    }
}

static int64_t
bytes_at (JsonObject *result, const char *path)
{
  const double bytes = pod_report_number (result, path);

  return fabs (bytes) < 9e18 ? llround (bytes) : 0;
}

static void
add_memory_diff (JsonObject *out, JsonObject *a, JsonObject *b)
{
  Terms terms = { .unit = "bytes", .per_unit = 1 };

  begin_terms (&terms, out, "memory", bytes_at (a, "memory.peak_bytes"),
               bytes_at (b, "memory.peak_bytes"));
  for (unsigned u = 0; u < POD_N_USES; u++)
    {
      g_autofree char *path = g_strdup_printf ("memory.%s_bytes", pod_memory_use_names[u]);

      add_term (&terms, pod_memory_use_names[u], bytes_at (a, path), bytes_at (b, path));
    }
  end_terms (&terms);
}

/* -- all --------------------------------------------------------------------------------------- */

static void
add_outcomes (JsonObject *side, JsonObject *result)
{
  static const char *const outcomes[]
      = { "step.lower_bound_s", "step.tokens_per_s", "step.tokens_per_s_per_chip",
          "step.mfu",           "step.hfu",          "step.bound",
          "memory.fits",        "train.days",        "train.cost_usd" };

  for (unsigned i = 0; i < G_N_ELEMENTS (outcomes); i++)
    {
      JsonNode *node = pod_report_node (result, outcomes[i]);

      if (node != NULL)
        json_object_set_member (side, strchr (outcomes[i], '.') + 1, json_node_copy (node));
    }
}

JsonObject *
pod_report_diff (JsonObject *a, JsonObject *b)
{
  g_return_val_if_fail (a != NULL && b != NULL, NULL);

  static const char *const lists[] = { "assumptions", "warnings" };
  JsonObject *out = json_object_new ();

  pod_result_set_int (out, "schema_version", 1);
  json_object_set_object_member (out, "a", json_object_new ());
  json_object_set_object_member (out, "b", json_object_new ());
  add_outcomes (pod_report_object (out, "a"), a);
  add_outcomes (pod_report_object (out, "b"), b);
  add_all_inputs (pod_result_get_array (out, "inputs"), a, b);
  add_time_diff (out, a, b);
  add_memory_diff (out, a, b);
  for (unsigned i = 0; i < G_N_ELEMENTS (lists); i++)
    {
      g_autofree char *only_a = g_strconcat (lists[i], ".only_a", NULL);
      g_autofree char *only_b = g_strconcat (lists[i], ".only_b", NULL);

      add_only (out, only_a, a, b, lists[i]);
      add_only (out, only_b, b, a, lists[i]);
    }
  return out;
}
