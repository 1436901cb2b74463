/* trace-check FILE...: judges Chrome traces (.json, gzip or not) by the rules of
 * support/trace-rules.c. trace-check --same CHROME PERFETTO: whether both say the same of one run.
 * Prints "ok FILE/RULE" or "not ok FILE/RULE: why"; exits 1 when a rule is broken or a file
 * unreadable. */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file-read.h"
#include "support/trace-facts.h"
#include "support/trace-rules.h"

/* Traces are held to 100 MB; what is bigger is read all the same, to say how big it is. */
#define LIMIT_BYTES ((size_t) 1 << 30)

static char *
read_text (const char *file, size_t *out_n_bytes, GError **error)
{
  size_t n_bytes;
  g_autofree char *data = pod_file_read (file, LIMIT_BYTES, &n_bytes, error);

  if (data == NULL)
    return NULL;
  if (pod_gzip_is_magic (data, n_bytes))
    return pod_gzip_inflate (file, data, n_bytes, LIMIT_BYTES, out_n_bytes, error);
  *out_n_bytes = n_bytes;
  return g_steal_pointer (&data);
}

static bool
check_file (const char *file)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_path_get_basename (file);
  size_t n_bytes;
  g_autofree char *text = read_text (file, &n_bytes, &error);
  bool is_good = true;

  if (text == NULL)
    {
      printf ("not ok %s/readable: %s\n", name, error->message);
      return false;
    }

  g_autoptr (GPtrArray) rules = trace_rules_check (text, n_bytes);

  for (guint i = 0; i < rules->len; i++)
    {
      const TraceRule *rule = g_ptr_array_index (rules, i);

      if (rule->why == NULL)
        printf ("ok %s/%s\n", name, rule->name);
      else
        printf ("not ok %s/%s: %s\n", name, rule->name, rule->why);
      is_good &= rule->why == NULL;
    }
  return is_good;
}

static bool
check_same (const char *chrome, const char *perfetto)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_path_get_basename (perfetto);
  size_t n_chrome = 0;
  size_t n_perfetto = 0;
  g_autofree char *text = read_text (chrome, &n_chrome, &error);
  g_autofree char *data = text != NULL ? read_text (perfetto, &n_perfetto, &error) : NULL;
  g_autofree char *why = data == NULL ? g_strdup (error->message) : NULL;
  g_autoptr (GPtrArray) a = why == NULL ? trace_facts_of_chrome (text, &why) : NULL;
  g_autoptr (GPtrArray) b = why == NULL ? trace_facts_of_perfetto (data, n_perfetto, &why) : NULL;

  if (why == NULL)
    why = trace_facts_compare (a, b);
  if (why == NULL)
    printf ("ok %s/same as the Chrome trace, %u slices, arrows and samples\n", name, a->len);
  else
    printf ("not ok %s/same as the Chrome trace: %s\n", name, why);
  return why == NULL;
}

int
main (int argc, char **argv)
{
  bool is_good = argc > 1;

  if (argc < 2)
    fputs ("usage: trace-check FILE... | --same CHROME PERFETTO\n", stderr);
  if (argc == 4 && strcmp (argv[1], "--same") == 0)
    return check_same (argv[2], argv[3]) ? 0 : 1;
  for (int i = 1; i < argc; i++)
    is_good &= check_file (argv[i]);
  return is_good ? 0 : 1;
}
