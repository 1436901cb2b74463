#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/cli.h"
#include "import/topology-import.h"

/* Moves @at back to where a character begins. */
static size_t
character_start (const char *text, size_t at)
{
  while (at > 0 && ((unsigned char) text[at] & 0xc0) == 0x80)
    at--;
  return at;
}

/* Messages quote what they were given, which may hold anything: it must neither steer the terminal nor
 * make more than one line, and what is right stands at the end. */
static void
print_line (const char *message)
{
  enum
  {
    MAX_BYTES = 1600,
    MAX_HEAD_BYTES = 1000,
    MAX_TAIL_BYTES = 500,
  };
  g_autofree char *line = g_utf8_make_valid (message, -1);
  size_t n_bytes = strlen (line);
  size_t n_head_bytes = n_bytes;
  size_t tail = n_bytes;

  for (char *c = line; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      *c = ' ';
  if (n_bytes > MAX_BYTES)
    {
      n_head_bytes = character_start (line, MAX_HEAD_BYTES);
      tail = character_start (line, n_bytes - MAX_TAIL_BYTES);
    }
  fprintf (stderr, "podsim: %.*s%s%s\n", (int) n_head_bytes, line, tail < n_bytes ? " [...] " : "", line + tail);
}

int
pod_cli_fail (const GError *error)
{
  static const int status_of_code[] = {
    [POD_ERROR_IO] = 1,          [POD_ERROR_PARSE] = 2,      [POD_ERROR_INVALID] = 2,
    [POD_ERROR_UNSUPPORTED] = 2, [POD_ERROR_INFEASIBLE] = 3, [POD_ERROR_LIMIT] = 3,
    [POD_ERROR_MEMORY] = 3,
  };

  print_line (error->message);
  if (error->domain != POD_ERROR)
    return 2;
  return status_of_code[error->code];
}

int
pod_cli_refuse (const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  print_line (message);
  return 2;
}

/* GOption's callback gets "--name" or "--no-name"; the scenario's table does the rest. */
static gboolean
take_option (const char *name, const char *value, gpointer data, GError **error)
{
  return pod_scenario_set (data, name + 2, value, error);
}

static bool
is_wanted (const char *name, const char *const *names)
{
  for (unsigned i = 0; names != NULL && names[i] != NULL; i++)
    if (strcmp (name, names[i]) == 0)
      return true;
  return names == NULL;
}

/* Frees the entries and the strings that were made for them. */
static void
entries_free (void *data)
{
  GArray *entries = data;

  for (guint i = 0; i < entries->len; i++)
    if (g_array_index (entries, GOptionEntry, i).flags & G_OPTION_FLAG_HIDDEN)
      g_free ((char *) g_array_index (entries, GOptionEntry, i).long_name);
  g_array_unref (entries);
}

typedef struct
{
  PodScenario *scenario;
  GArray *entries;
} GroupData;

static gboolean
take_group_option (const char *name, const char *value, gpointer data, GError **error)
{
  return take_option (name, value, ((GroupData *) data)->scenario, error);
}

static void
group_data_free (void *data)
{
  entries_free (((GroupData *) data)->entries);
  g_free (data);
}

GOptionGroup *
pod_cli_scenario_group (PodScenario *scenario, const char *const *names)
{
  GroupData *data = g_new0 (GroupData, 1);
  GOptionGroup *group;
  GOptionEntry end = { .long_name = NULL };

  data->scenario = scenario;
  scenario->load_topology = pod_import_topology; /* the command line takes files of others, too */
  data->entries = g_array_new (FALSE, TRUE, sizeof (GOptionEntry));
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    {
      GOptionEntry entry = { .long_name = option->name,
                             .arg = G_OPTION_ARG_CALLBACK,
                             .arg_data = __extension__ (gpointer) take_group_option, /* GOption's own way */
                             .description = option->help,
                             .arg_description = option->placeholder };

      if (!is_wanted (option->name, names))
        continue;
      /* FILENAME: the bytes as they are; GOption refuses other text than ASCII in the locale C */
      entry.flags = option->kind == POD_OPTION_FLAG ? G_OPTION_FLAG_NO_ARG : G_OPTION_FLAG_FILENAME;
      g_array_append_val (data->entries, entry);
      if (option->kind == POD_OPTION_FLAG)
        {
          entry.long_name = g_strdup_printf ("no-%s", option->name);
          entry.flags |= G_OPTION_FLAG_HIDDEN;
          g_array_append_val (data->entries, entry);
        }
    }
  g_array_append_val (data->entries, end);
  group = g_option_group_new ("job", "The job:", "Options of the job", data, group_data_free);
  g_option_group_add_entries (group, (const GOptionEntry *) data->entries->data);
  return group;
}

static bool
is_flag (const char *name, const GOptionEntry *entries)
{
  for (; entries->long_name != NULL; entries++)
    if (strcmp (entries->long_name, name) == 0)
      return entries->arg == G_OPTION_ARG_NONE;
  if (g_str_has_prefix (name, "no-"))
    name += strlen ("no-");
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (strcmp (option->name, name) == 0)
      return option->kind == POD_OPTION_FLAG;
  return false;
}

/* GOption takes "--flag=false" for "--flag". */
static bool
check_flags (char *const *words, const GOptionEntry *entries)
{
  for (; *words != NULL && strcmp (*words, "--") != 0; words++)
    {
      const char *equals = strchr (*words, '=');
      g_autofree char *name = NULL;

      if (!g_str_has_prefix (*words, "--") || equals == NULL)
        continue;
      name = g_strndup (*words + 2, (gsize) (equals - *words - 2));
      if (is_flag (name, entries))
        {
          pod_cli_refuse ("--%s: takes no value, got '%s'; write --%s alone", name, equals + 1, name);
          return false;
        }
    }
  return true;
}

bool
pod_cli_parse (GOptionContext *context, const GOptionEntry *entries, int *argc, char ***argv, int max_rest, int *out_status)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strdup_printf ("podsim %s", (*argv)[0]);

  g_set_prgname (name); /* for --help */
  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_help_enabled (context, FALSE);
  for (int i = 1; i < *argc; i++)
    if (strcmp ((*argv)[i], "--help") == 0 || strcmp ((*argv)[i], "-h") == 0)
      {
        g_autofree char *help = g_option_context_get_help (context, FALSE, NULL);

        fputs (help, stdout);
        *out_status = 0;
        return false;
      }
  *out_status = 2;
  if (!check_flags (*argv + 1, entries))
    return false;
  if (!g_option_context_parse (context, argc, argv, &error))
    {
      *out_status = pod_cli_fail (error);
      return false;
    }
  if (*argc - 1 > max_rest)
    {
      pod_cli_refuse ("unexpected argument '%s'; podsim help %s lists the options", (*argv)[max_rest + 1], (*argv)[0]);
      return false;
    }
  return true;
}

bool
pod_cli_write_json (JsonObject *result, const char *file, GError **error)
{
  g_autoptr (JsonNode) root = json_node_alloc ();
  g_autofree char *text = NULL;

  json_node_init_object (root, result);
  text = pod_json_to_text (root);
  return pod_output_save (file, text, error);
}

bool
pod_cli_choose_library (const PodTopology *topology, PodFidelity fidelity, const char *asked, PodLibrary **out, GError **error)
{
  const char *name = asked != NULL ? asked : pod_library_default (topology->chip);

  *out = NULL;
  if (name == NULL || strcmp (name, "none") == 0)
    return true;
  *out = pod_library_load (name, error);
  if (*out == NULL)
    {
      if (asked != NULL)
        g_prefix_error (error, "--library: ");
      return false;
    }
  if (fidelity != POD_FIDELITY_CALIBRATED)
    g_clear_pointer (out, pod_library_free);
  return true;
}
