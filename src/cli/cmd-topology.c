#include <stdio.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/table.h"
#include "base/units.h"
#include "base/xml.h"
#include "cli/cli.h"
#include "cli/machine-facts.h"
#include "import/topology-import.h"
#include "report/topology-dot.h"
#include "report/topology-svg.h"

/* podsim topology: what a machine is, or a chip; pictures and other formats of it. */

typedef struct
{
  char *json;
  char *check;
  char *svg;
  char *convert;
  char *from; /* (nullable) format of the machine's file */
} Outputs;

static void
outputs_clear (Outputs *outputs)
{
  g_free (outputs->json);
  g_free (outputs->check);
  g_free (outputs->svg);
  g_free (outputs->convert);
  g_free (outputs->from);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Outputs, outputs_clear)

static bool
is_stdout (const char *file)
{
  return g_strcmp0 (file, "-") == 0;
}

/* Names of chips are read in any case. */
static bool
is_chip (const char *text)
{
  g_autoptr (GPtrArray) chips = pod_chip_names ();
  g_autofree char *lower = g_ascii_strdown (text, -1);

  return g_ptr_array_find_with_equal_func (chips, lower, g_str_equal, NULL);
}

/* ---- files ---- */

/* The file that @text names; NULL for a shape expression. Returns: (transfer full) (nullable) */
static char *
find_file (const char *text)
{
  return pod_data_find ("topologies", text, ".xml");
}

/* What looks like a path but is no file is said as such, before it is taken for a name. */
static bool
check_path (const char *text, GError **error)
{
  g_autofree char *file = find_file (text);

  if (file != NULL)
    return true;
  if (g_file_test (text, G_FILE_TEST_IS_DIR))
    g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: is a folder, not a topology file", text);
  else if (g_str_has_suffix (text, ".xml") && strrchr (text, ':') == NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: no such file", text);
  else
    return true;
  return false;
}

/* Attributes of a machine's file that do not change it. */
typedef struct
{
  char *title;  /* (nullable) */
  char *source; /* (nullable) */
} Caption;

static void
caption_clear (Caption *caption)
{
  g_free (caption->title);
  g_free (caption->source);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Caption, caption_clear)

static void
read_caption (const char *text, Caption *out)
{
  g_autofree char *file = find_file (text);
  g_autoptr (PodXml) xml = file != NULL ? pod_xml_load (file, NULL, NULL) : NULL;

  if (xml == NULL)
    return;
  out->title = pod_xml_attr (pod_xml_root (xml), "title");
  out->source = pod_xml_attr (pod_xml_root (xml), "source");
}

static bool
check_own_file (const char *text, const char *file, GError **error)
{
  g_autoptr (PodXml) xml = pod_xml_load (file, NULL, error);
  g_autoptr (PodTopology) topology = NULL;
  g_autoptr (PodChip) chip = NULL;
  const char *root;

  if (xml == NULL)
    return false;
  root = (const char *) pod_xml_root (xml)->name;
  if (strcmp (root, "chip") == 0)
    chip = pod_chip_load (file, NULL, error);
  else if (strcmp (root, "topology") == 0)
    topology = pod_topology_load (file, error);
  else
    pod_xml_error (xml, pod_xml_root (xml), error, "<%s> is neither a <topology> nor a <chip>",
                   root);
  if (chip == NULL && topology == NULL)
    return false;
  printf ("%s: ok\n", text);
  return true;
}

/* Loads a machine or a chip file, ours or of another program, and forgets it. */
static bool
check_file (const char *text, const char *from, GError **error)
{
  g_autofree char *found = find_file (text);
  const char *file = found != NULL ? found : text;
  const PodTopologyFormat *format = pod_topology_format_of (file);

  if (from == NULL && format == NULL)
    return check_own_file (text, file, error);
  g_autoptr (PodTopology) topology = pod_import_topology (file, from, error);
  if (topology != NULL)
    printf ("%s: ok (%s)\n", text, from != NULL ? from : format->summary);
  return topology != NULL;
}

/* ---- lists ---- */

static const char *
family_shape (const PodChip *chip)
{
  switch (chip->family)
    {
    case POD_FAMILY_TPU:
      return chip->torus_dims == 2 ? "2-D torus" : "3-D torus";
    case POD_FAMILY_SWITCH:
      return "switch";
    case POD_FAMILY_MESH:
      return "full mesh";
    }
  g_assert_not_reached ();
}

static void
add_chip_row (PodTable *table, const PodChip *chip)
{
  bool is_tpu = chip->family == POD_FAMILY_TPU;
  const PodRated *link = is_tpu ? &chip->ici_bytes_per_s : &chip->scale_up_bytes_per_s;
  g_autofree char *peak = pod_format_flops (chip->peak_flops_per_s[POD_DTYPE_BF16].nominal);
  g_autofree char *peak_per_s = g_strconcat (peak, "/s", NULL);
  g_autofree char *hbm = pod_format_bytes (chip->hbm_bytes.nominal, false);
  g_autofree char *hbm_rate = pod_format_bytes_per_s (chip->hbm_bytes_per_s.nominal);
  g_autofree char *link_rate = pod_format_bytes_per_s (link->nominal);
  g_autofree char *nic = pod_format_bytes_per_s (chip->nic_bytes_per_s.nominal);
  g_autofree char *size = g_strdup_printf ("%.0f", pod_chip_full_size (chip));
  g_autofree char *devices = g_strdup_printf ("%u", chip->devices_per_chip);
  g_autofree char *host = g_strdup_printf ("%u", chip->chips_per_host);
  g_autofree char *rails
      = is_tpu ? g_strdup ("")
               : g_strdup_printf ("%u", pod_chip_default_rails (chip, chip->scale_up_chips));
  g_autofree char *levels = is_tpu ? g_strdup ("") : g_strdup_printf ("%u", chip->tree_levels);
  g_autofree char *radix = is_tpu ? g_strdup ("") : g_strdup_printf ("%u", chip->switch_radix);
  const char *const cells[] = { chip->name,          peak_per_s, hbm,    hbm_rate, devices,
                                family_shape (chip), link_rate,  size,   host,     nic,
                                is_tpu ? "" : "1",   rails,      levels, radix };

  pod_table_add_row (table, cells);
}

/* Chips with the defaults that a shape expression takes. */
static bool
print_chips (GPtrArray *names, GError **error)
{
  static const char *const columns[]
      = { "chip",  ">bf16", ">HBM",     ">HBM rate", ">devices", "inside", ">link", ">pod",
          ">host", ">nic",  ">oversub", ">rails",    ">levels",  ">radix", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (guint i = 0; i < names->len; i++)
    {
      g_autoptr (PodChip) chip = pod_chip_load (g_ptr_array_index (names, i), NULL, error);

      if (chip == NULL)
        return false;
      add_chip_row (table, chip);
    }
  text = pod_table_to_text (table);
  printf ("%s\n", text);
  puts ("devices: what software sees of one chip. link: one ICI link, or all scale-up links of a "
        "chip; one direction. pod: chips of the");
  puts ("largest slice, or of a scale-up domain. host: chips of one. nic, oversub, rails, levels, "
        "radix: defaults of CHIP:SHAPE, where a");
  puts ("tree has at least that many levels once it outgrows the switches of one unit. podsim "
        "topology CHIP shows all, with sources.\n");
  return true;
}

static bool
print_systems (GPtrArray *names, GError **error)
{
  static const char *const columns[] = { "machine", ">chips", "chip", "", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (guint i = 0; i < names->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);
      g_autoptr (PodTopology) topology = pod_topology_load (name, error);
      g_auto (Caption) caption = { 0 };
      g_autofree char *size = NULL;

      if (topology == NULL)
        return false;
      read_caption (name, &caption);
      size = g_strdup_printf ("%u", topology->n_chips);
      pod_table_add_row (table, (const char *[]){ name, size, topology->chip->name,
                                                  caption.title != NULL ? caption.title : "" });
    }
  text = pod_table_to_text (table);
  fputs (text, stdout);
  return true;
}

static void
set_names (JsonObject *root, const char *path, GPtrArray *names)
{
  JsonArray *array = pod_result_get_array (root, path);

  for (guint i = 0; i < names->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (names, i));
}

static bool
list_all (const PodScenario *scenario, const Outputs *outputs, GError **error)
{
  g_autoptr (GPtrArray) chips = pod_chip_names ();
  g_autoptr (GPtrArray) systems = pod_data_list ("topologies", ".xml");
  g_autoptr (JsonObject) root = NULL;

  if (scenario->set->len > 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--set: of which machine? podsim topology T --set PATH=VALUE");
      return false;
    }
  if (outputs->svg != NULL || outputs->convert != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--%s: of which machine? podsim topology T --%s FILE",
                   outputs->svg != NULL ? "svg" : "convert",
                   outputs->svg != NULL ? "svg" : "convert");
      return false;
    }
  if (!is_stdout (outputs->json)
      && (!print_chips (chips, error) || !print_systems (systems, error)))
    return false;
  if (outputs->json == NULL)
    return true;
  root = json_object_new ();
  pod_result_set_int (root, "schema_version", 1);
  set_names (root, "chips", chips);
  set_names (root, "systems", systems);
  return pod_cli_write_json (root, outputs->json, error);
}

/* ---- one machine, or one chip ---- */

static bool
convert (const PodTopology *topology, const char *file, GError **error)
{
  g_autofree char *text = NULL;

  if (g_str_has_suffix (file, ".xml"))
    text = pod_topology_to_xml (topology);
  else if (g_str_has_suffix (file, ".dot"))
    text = pod_report_topology_dot (topology, error);
  else
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "--convert: '%s' ends neither in .xml nor in .dot", file);
  return text != NULL && pod_output_save (file, text, error);
}

static bool
save_svg (const PodTopology *topology, const char *file, GError **error)
{
  g_autofree char *text = pod_report_topology_svg (topology);

  return pod_output_save (file, text, error);
}

/* What is described: a machine, or a chip without one. */
typedef struct
{
  const PodTopology *topology; /* (nullable) */
  const PodChip *chip;
  const Caption *caption;
  GPtrArray *assumptions; /* (element-type utf8) */
} Subject;

static void
print_subject (const Subject *subject)
{
  g_autoptr (GString) out = g_string_new (NULL);

  if (subject->topology != NULL)
    {
      pod_machine_facts_print (subject->topology, subject->caption->title, subject->caption->source,
                               out);
      g_string_append_c (out, '\n');
    }
  pod_chip_facts_print (subject->chip, out);
  g_string_append_c (out, '\n');
  pod_chip_defaults_print (subject->chip, out);
  for (guint i = 0; i < subject->assumptions->len; i++)
    g_string_append_printf (out, "note: %s\n",
                            (const char *) g_ptr_array_index (subject->assumptions, i));
  fputs (out->str, stdout);
}

/* @file: (nullable) */
static bool
write_json (const Subject *subject, const char *file, GError **error)
{
  g_autoptr (JsonObject) root = NULL;

  if (file == NULL)
    return true;
  root = json_object_new ();
  pod_result_set_int (root, "schema_version", 1);
  if (subject->topology != NULL)
    pod_machine_facts_set (subject->topology, subject->caption->title, subject->caption->source,
                           root);
  pod_chip_facts_set (subject->chip, root);
  set_names (root, "assumptions", subject->assumptions);
  return pod_cli_write_json (root, file, error);
}

/* Overrides of a chip without a machine around it. */
static bool
apply_chip_sets (PodChip *chip, const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  for (guint i = 0; i < scenario->set->len; i++)
    {
      const char *text = g_ptr_array_index (scenario->set, i);
      g_auto (GStrv) pair = g_strsplit (text, "=", 2);

      if (!g_str_has_prefix (text, "chip.") || pair[1] == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--set %s: a chip has chip.FIELD=VALUE only", text);
          return false;
        }
      if (!pod_chip_set (chip, pair[0] + strlen ("chip."), pair[1], error))
        {
          g_prefix_error (error, "--set %s: ", text);
          return false;
        }
      g_ptr_array_add (assumptions, g_strdup_printf ("set: %s", text));
    }
  return true;
}

static bool
describe_chip (const PodScenario *scenario, const Outputs *outputs, GError **error)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodChip) chip = pod_chip_load (scenario->topology, assumptions, error);
  Subject subject;

  if (chip == NULL || !apply_chip_sets (chip, scenario, assumptions, error))
    return false;
  if (outputs->svg != NULL || outputs->convert != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "'%s' is a chip, not a machine: write %s:SHAPE, such as %s:%s", chip->name,
                   chip->name, chip->name,
                   chip->family != POD_FAMILY_TPU ? "8x4"
                   : chip->torus_dims == 2        ? "4x4"
                                                  : "4x4x4");
      return false;
    }
  subject = (Subject){ .chip = chip, .assumptions = assumptions };
  if (!is_stdout (outputs->json))
    print_subject (&subject);
  return write_json (&subject, outputs->json, error);
}

/* An override of a model has no meaning here and would pass unseen. */
static bool
check_sets (const PodScenario *scenario, GError **error)
{
  for (guint i = 0; i < scenario->set->len; i++)
    {
      const char *text = g_ptr_array_index (scenario->set, i);

      if (g_str_has_prefix (text, "model."))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--set %s: a machine has chip.FIELD=VALUE and topology.FIELD=VALUE", text);
          return false;
        }
    }
  return true;
}

static bool
describe_machine (const PodScenario *scenario, const Outputs *outputs, GError **error)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopology) topology = NULL;
  g_auto (Caption) caption = { 0 };
  bool is_picture = outputs->svg != NULL || outputs->convert != NULL;
  Subject subject;

  if (!check_path (scenario->topology, error) || !check_sets (scenario, error))
    return false;
  topology = pod_scenario_topology (scenario, assumptions, error);
  if (topology == NULL)
    return false;
  read_caption (scenario->topology, &caption);
  subject = (Subject){
    .topology = topology, .chip = topology->chip, .caption = &caption, .assumptions = assumptions
  };
  if (!is_picture && !is_stdout (outputs->json))
    print_subject (&subject);
  if (outputs->svg != NULL && !save_svg (topology, outputs->svg, error))
    return false;
  if (outputs->convert != NULL && !convert (topology, outputs->convert, error))
    return false;
  return write_json (&subject, outputs->json, error);
}

/* ---- the command ---- */

/* @rest: (nullable) the argument behind the options. */
static bool
choose (PodScenario *scenario, const Outputs *outputs, const char *rest, GError **error)
{
  if (rest != NULL && scenario->topology != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--topology: '%s' and '%s' are two machines", scenario->topology, rest);
      return false;
    }
  if (rest != NULL && !pod_scenario_set (scenario, "topology", rest, error))
    return false;
  if (outputs->check != NULL && scenario->topology != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--check: takes a file and nothing else, got '%s' too", scenario->topology);
      return false;
    }
  if (outputs->check != NULL)
    return check_file (outputs->check, outputs->from, error);
  if (scenario->topology == NULL && outputs->from != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--from: of which file? podsim topology FILE --from %s", outputs->from);
      return false;
    }
  scenario->topology_format = outputs->from;
  if (scenario->topology == NULL)
    return list_all (scenario, outputs, error);
  if (outputs->from == NULL && is_chip (scenario->topology))
    return describe_chip (scenario, outputs, error);
  return describe_machine (scenario, outputs, error);
}

int
pod_cmd_topology (int argc, char **argv)
{
  static const char *const names[] = { "topology", "set", NULL };
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_auto (Outputs) outputs = { 0 };
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &outputs.json, "every number as JSON (- is stdout)",
      "FILE" },
    { "check", 0, 0, G_OPTION_ARG_FILENAME, &outputs.check,
      "only loads a machine or chip file and says ok, or what is wrong", "FILE" },
    { "svg", 0, 0, G_OPTION_ARG_FILENAME, &outputs.svg, "a picture of the machine (- is stdout)",
      "FILE" },
    { "convert", 0, 0, G_OPTION_ARG_FILENAME, &outputs.convert,
      "the machine as our XML or for Graphviz", "FILE.xml|FILE.dot" },
    { "from", 0, 0, G_OPTION_ARG_STRING, &outputs.from,
      "the format of T, a file of another program; unless given, its content tells",
      "auto|nccl|simgrid|astra" },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("[T] - what a machine is");
  int status;

  g_option_context_set_summary (
      context, "T is a file, a name in topologies/, a shape such as tpu-v5p:4x4x8 or h100:8x128, "
               "or a chip;\n"
               "without one, chips and machines are listed with the defaults of shapes.");
  g_option_context_add_group (context, pod_cli_scenario_group (scenario, names));
  if (!pod_cli_parse (context, entries, &argc, &argv, 1, &status))
    return status;
  if (!choose (scenario, &outputs, argc > 1 ? argv[1] : NULL, &error))
    return pod_cli_fail (error);
  return 0;
}
