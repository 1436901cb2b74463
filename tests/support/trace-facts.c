#include "support/trace-facts.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "support/trace-facts-private.h"

void
trace_fact_free (void *data)
{
  TraceFact *fact = data;

  g_free (fact->what);
  g_free (fact);
}

void
trace_fact_add (GPtrArray *facts, char *what, int64_t dur_ns)
{
  TraceFact *fact = g_new0 (TraceFact, 1);

  *fact = (TraceFact){ .what = what, .dur_ns = dur_ns };
  g_ptr_array_add (facts, fact);
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  const TraceFact *x = *(const TraceFact *const *) a;
  const TraceFact *y = *(const TraceFact *const *) b;
  const int order = strcmp (x->what, y->what);

  return order != 0 ? order : (x->dur_ns > y->dur_ns) - (x->dur_ns < y->dur_ns);
}

void
trace_facts_sort (GPtrArray *facts)
{
  g_ptr_array_sort (facts, compare);
}

static gint
compare_texts (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

char *
trace_facts_join (GPtrArray *arguments)
{
  g_ptr_array_sort (arguments, compare_texts);
  g_ptr_array_add (arguments, NULL);
  return g_strjoinv (", ", (char **) arguments->pdata);
}

char *
trace_facts_compare (const GPtrArray *a, const GPtrArray *b)
{
  for (guint i = 0; i < MAX (a->len, b->len); i++)
    {
      const TraceFact *x = i < a->len ? g_ptr_array_index (a, i) : NULL;
      const TraceFact *y = i < b->len ? g_ptr_array_index (b, i) : NULL;

      if (x == NULL || y == NULL || strcmp (x->what, y->what) != 0)
        return g_strdup_printf ("%s | but | %s", x != NULL ? x->what : "nothing",
                                y != NULL ? y->what : "nothing");
      if (ABS (x->dur_ns - y->dur_ns) > 1)
        return g_strdup_printf ("%s: %" G_GINT64_FORMAT " ns | but | %" G_GINT64_FORMAT " ns",
                                x->what, x->dur_ns, y->dur_ns);
    }
  return NULL;
}

/* -- Chrome ------------------------------------------------------------------------------------ */

/* A slice, to be found by an arrow's end. */
typedef struct
{
  int64_t start_ns;
  int64_t end_ns;
  const char *name;
} Slice;

typedef struct
{
  GHashTable *processes;  /* pid to name */
  GHashTable *threads;    /* tid to name */
  GHashTable *slices;     /* tid to (element-type Slice), in order */
  GHashTable *departures; /* id of an arrow to its start's text */
  GPtrArray *facts;
} Chrome;

static void
unref_array (void *data)
{
  g_array_unref (data);
}

static int64_t
whole (JsonObject *event, const char *key)
{
  return json_object_has_member (event, key) ? json_object_get_int_member (event, key) : 0;
}

static int64_t
nanoseconds (JsonObject *event, const char *key)
{
  return llround (json_object_get_double_member (event, key) * 1000);
}

/* "layer=3, axis=tp" */
static char *
arguments_of (JsonObject *event)
{
  JsonObject *args = json_object_get_object_member (event, "args");
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GList) names = json_object_get_members (args);

  for (GList *l = names; l != NULL; l = l->next)
    {
      JsonNode *node = json_object_get_member (args, l->data);
      g_autofree char *text = json_node_get_value_type (node) == JSON_VALUE_STRING
                                  ? json_node_dup_string (node)
                                  : pod_format_double (json_node_get_double (node));

      g_ptr_array_add (texts, g_strdup_printf ("%s=%s", (const char *) l->data, text));
    }
  return trace_facts_join (texts);
}

static const char *
name_in (GHashTable *names, int64_t id)
{
  const char *name = g_hash_table_lookup (names, GINT_TO_POINTER ((int) id));

  return name != NULL ? name : "?";
}

static void
read_name (Chrome *chrome, JsonObject *event)
{
  const char *what = json_object_get_string_member (event, "name");
  JsonObject *args = json_object_get_object_member (event, "args");

  if (strcmp (what, "process_name") == 0)
    g_hash_table_insert (chrome->processes, GINT_TO_POINTER ((int) whole (event, "pid")),
                         g_strdup (json_object_get_string_member (args, "name")));
  if (strcmp (what, "thread_name") == 0)
    g_hash_table_insert (chrome->threads, GINT_TO_POINTER ((int) whole (event, "tid")),
                         g_strdup (json_object_get_string_member (args, "name")));
}

static void
read_slice (Chrome *chrome, JsonObject *event)
{
  void *tid = GINT_TO_POINTER ((int) whole (event, "tid"));
  GArray *slices = g_hash_table_lookup (chrome->slices, tid);
  const Slice slice = { .start_ns = nanoseconds (event, "ts"),
                        .end_ns = nanoseconds (event, "ts") + nanoseconds (event, "dur"),
                        .name = json_object_get_string_member (event, "name") };
  g_autofree char *arguments = arguments_of (event);

  if (slices == NULL)
    {
      slices = g_array_new (FALSE, FALSE, sizeof (Slice));
      g_hash_table_insert (chrome->slices, tid, slices);
    }
  g_array_append_val (slices, slice);
  trace_fact_add (chrome->facts,
                  g_strdup_printf ("slice %s | %s | %s | %s | %" G_GINT64_FORMAT " | {%s}",
                                   name_in (chrome->processes, whole (event, "pid")),
                                   name_in (chrome->threads, whole (event, "tid")),
                                   json_object_get_string_member (event, "cat"), slice.name,
                                   slice.start_ns, arguments),
                  slice.end_ns - slice.start_ns);
}

/* The last slice of the thread that is open then. */
static char *
text_of_end (Chrome *chrome, JsonObject *event)
{
  const GArray *slices
      = g_hash_table_lookup (chrome->slices, GINT_TO_POINTER ((int) whole (event, "tid")));
  const int64_t at_ns = nanoseconds (event, "ts");
  guint low = 0;
  guint high = slices != NULL ? slices->len : 0;

  while (low < high)
    {
      const guint middle = (low + high) / 2;

      if (g_array_index (slices, Slice, middle).start_ns <= at_ns)
        low = middle + 1;
      else
        high = middle;
    }
  while (low > 0 && g_array_index (slices, Slice, low - 1).end_ns <= at_ns)
    low--;
  return g_strdup_printf ("%s | %s | %s", name_in (chrome->processes, whole (event, "pid")),
                          name_in (chrome->threads, whole (event, "tid")),
                          low > 0 ? g_array_index (slices, Slice, low - 1).name : "nothing");
}

static void
read_arrow (Chrome *chrome, JsonObject *event, bool is_end)
{
  void *id = GINT_TO_POINTER ((int) whole (event, "id"));
  g_autofree char *text = text_of_end (chrome, event);

  if (!is_end)
    g_hash_table_insert (chrome->departures, id, g_steal_pointer (&text));
  else
    trace_fact_add (chrome->facts,
                    g_strdup_printf ("arrow %d: %s > %s", GPOINTER_TO_INT (id),
                                     (const char *) g_hash_table_lookup (chrome->departures, id),
                                     text),
                    0);
}

static void
read_sample (Chrome *chrome, JsonObject *event)
{
  g_autofree char *value = arguments_of (event);

  trace_fact_add (chrome->facts,
                  g_strdup_printf ("sample %s | %s | %" G_GINT64_FORMAT " | %s",
                                   name_in (chrome->processes, whole (event, "pid")),
                                   json_object_get_string_member (event, "name"),
                                   nanoseconds (event, "ts"), value),
                  0);
}

static void
read_event (Chrome *chrome, JsonObject *event)
{
  switch (*json_object_get_string_member (event, "ph"))
    {
    case 'M':
      read_name (chrome, event);
      break;
    case 'X':
      read_slice (chrome, event);
      break;
    case 's':
    case 'f':
      read_arrow (chrome, event, *json_object_get_string_member (event, "ph") == 'f');
      break;
    case 'C':
      read_sample (chrome, event);
      break;
    default:
      break;
    }
}

static void
read_metadata (Chrome *chrome, JsonObject *other)
{
  g_autoptr (GList) names = json_object_get_members (other);

  for (GList *l = names; l != NULL; l = l->next)
    {
      JsonNode *node = json_object_get_member (other, l->data);
      g_autofree char *text = json_node_get_value_type (node) == JSON_VALUE_STRING
                                  ? json_node_dup_string (node)
                                  : g_strdup_printf ("%" G_GINT64_FORMAT, json_node_get_int (node));

      trace_fact_add (chrome->facts, g_strdup_printf ("run %s=%s", (const char *) l->data, text),
                      0);
    }
}

GPtrArray *
trace_facts_of_chrome (const char *text, char **why)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodJson) json = pod_json_parse ("trace", text, -1, &error);
  Chrome chrome = { 0 };
  JsonObject *top;
  JsonArray *events;

  if (json == NULL)
    {
      *why = g_strdup (error->message);
      return NULL;
    }
  chrome.processes = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  chrome.threads = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  chrome.slices = g_hash_table_new_full (NULL, NULL, NULL, unref_array);
  chrome.departures = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  chrome.facts = g_ptr_array_new_with_free_func (trace_fact_free);
  top = json_node_get_object (json->root);
  events = json_object_get_array_member (top, "traceEvents");
  for (guint i = 0; i < json_array_get_length (events); i++)
    read_event (&chrome, json_array_get_object_element (events, i));
  read_metadata (&chrome, json_object_get_object_member (top, "otherData"));
  g_hash_table_unref (chrome.processes);
  g_hash_table_unref (chrome.threads);
  g_hash_table_unref (chrome.slices);
  g_hash_table_unref (chrome.departures);
  trace_facts_sort (chrome.facts);
  return chrome.facts;
}
