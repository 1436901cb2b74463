#include "import/topology-import.h"

#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/file-read.h"
#include "import/astra-yaml.h"
#include "import/nccl-xml.h"
#include "import/simgrid-xml.h"

/* -- telling formats apart --------------------------------------------------------------------- */

/* The name of the first element of an XML text, behind comments and declarations. (nullable) */
static const char *
first_element (const char *text)
{
  const char *at = text;

  for (;;)
    {
      at = strchr (at, '<');
      if (at == NULL)
        return NULL;
      if (g_str_has_prefix (at, "<!--"))
        at = strstr (at, "-->");
      else if (at[1] == '?' || at[1] == '!')
        at = strchr (at, '>');
      else
        return at + 1;
      if (at == NULL)
        return NULL;
    }
}

static bool
begins_with_element (const char *text, const char *name)
{
  const char *element = first_element (text);
  size_t length = strlen (name);

  return element != NULL && strncmp (element, name, length) == 0
         && strchr (" \t\r\n/>", element[length]) != NULL && element[length] != '\0';
}

/* Whether a line begins with @key and a colon. */
static bool
has_key (const char *text, const char *key)
{
  size_t length = strlen (key);

  for (const char *at = text; at != NULL; at = strchr (at, '\n'))
    {
      at += *at == '\n';
      if (strncmp (at, key, length) == 0 && at[length + strspn (at + length, " ")] == ':')
        return true;
    }
  return false;
}

static bool
is_nccl (const char *text)
{
  return begins_with_element (text, "system");
}

static bool
is_simgrid (const char *text)
{
  return begins_with_element (text, "platform");
}

static bool
is_astra (const char *text)
{
  return has_key (text, "topology") && has_key (text, "npus_count");
}

const PodTopologyFormat pod_topology_formats[] = {
  { "nccl", "NCCL and RCCL topology XML", is_nccl, pod_nccl_xml_read },
  { "simgrid", "SimGrid platform XML", is_simgrid, pod_simgrid_xml_read },
  { "astra", "ASTRA-sim network YAML", is_astra, pod_astra_yaml_read },
  { NULL, NULL, NULL, NULL },
};

static const PodTopologyFormat *
find_format (const char *name, GError **error)
{
  g_autoptr (GString) known = g_string_new ("auto");

  for (const PodTopologyFormat *format = pod_topology_formats; format->name != NULL; format++)
    {
      if (strcmp (format->name, name) == 0)
        return format;
      g_string_append_printf (known, ", %s", format->name);
    }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "unknown format '%s': it is one of %s", name,
               known->str);
  return NULL;
}

/* -- loading ----------------------------------------------------------------------------------- */

/* Files that are often beside a topology, and no topology. */
static bool
refuse_graph (const char *file, const char *text, GError **error)
{
  if (!begins_with_element (text, "graphs"))
    return false;
  g_set_error (
      error, POD_ERROR, POD_ERROR_UNSUPPORTED,
      "%s:1: NCCL's graphs (rings and trees that it chose), not a topology: give the file of "
      "NCCL_TOPO_DUMP_FILE",
      file);
  return true;
}

/* *out: NULL for a file of ours. */
static bool
detect (const char *file, const PodTopologyFormat **out, GError **error)
{
  size_t n_bytes = 0;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);

  *out = NULL;
  if (text == NULL || refuse_graph (file, text, error))
    return false;
  for (const PodTopologyFormat *format = pod_topology_formats; format->name != NULL; format++)
    if (*out == NULL && format->is_format (text))
      *out = format;
  return true;
}

const PodTopologyFormat *
pod_topology_format_of (const char *file)
{
  const PodTopologyFormat *format = NULL;

  return detect (file, &format, NULL) ? format : NULL;
}

PodTopology *
pod_import_topology (const char *text, const char *name, GError **error)
{
  g_return_val_if_fail (text != NULL, NULL);

  g_autofree char *file = pod_data_find ("topologies", text, ".xml");
  const PodTopologyFormat *format = NULL;
  bool is_auto = name == NULL || strcmp (name, "auto") == 0;

  if (!is_auto)
    {
      format = find_format (name, error);
      if (format == NULL)
        return NULL;
      return format->read (file != NULL ? file : text, error);
    }
  if (file == NULL)
    return pod_topology_load (text, error);
  if (!detect (file, &format, error))
    return NULL;
  return format != NULL ? format->read (file, error) : pod_topology_load (text, error);
}
