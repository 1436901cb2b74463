#include "collective/library.h"

#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/xml.h"

/* Reading and writing topologies/libraries/NAME.xml. */

static const char *const protocol_names[POD_N_PROTOCOLS] = {
  [POD_PROTOCOL_LL] = "ll",
  [POD_PROTOCOL_LL128] = "ll128",
  [POD_PROTOCOL_SIMPLE] = "simple",
};

/* Which library a vendor's chips use. */
static const struct
{
  const char *vendor;
  const char *library;
} defaults[] = {
  { "NVIDIA", "nccl-2.27" },
  { "AMD", "rccl" },
  { "Google", "xla" },
};

#define PATH(field) offsetof (PodLibraryPath, field)
#define KIND(kind)  offsetof (PodLibraryPath, kind_rate_ratio) + (kind) * sizeof (double)

const PodLibraryNumber pod_library_numbers[] = {
  { "launch", POD_UNIT_SECONDS, PATH (launch_s), 1e-7, 3e-4 },
  { "spread", POD_UNIT_SECONDS, PATH (spread_s), 1e-8, 3e-4 },
  { "step", POD_UNIT_SECONDS, PATH (step_s), 1e-8, 6e-5 },
  { "pair_step", POD_UNIT_SECONDS, PATH (pair_step_s), 1e-10, 1e-6 },
  { "net_step", POD_UNIT_SECONDS, PATH (net_step_s), 1e-8, 6e-5 },
  { "widen", POD_UNIT_RATIO, PATH (widen_ratio), 1e-3, 1 },
  { "widen_size", POD_UNIT_BYTES, PATH (widen_bytes), 512, 1e7 },
  { "overlap", POD_UNIT_COUNT, PATH (overlap), 1, 8 },
  { "rate", POD_UNIT_RATIO, PATH (rate_ratio), 0.01, 1 },
  { "rate_all_gather", POD_UNIT_RATIO, KIND (POD_ALL_GATHER), 0.01, 1 },
  { "rate_reduce_scatter", POD_UNIT_RATIO, KIND (POD_REDUCE_SCATTER), 0.01, 1 },
  { "rate_all_reduce", POD_UNIT_RATIO, KIND (POD_ALL_REDUCE), 0.01, 1 },
  { "net_rate", POD_UNIT_RATIO, PATH (net_rate_ratio), 0.01, 1 },
  { "net_rate_all_to_all", POD_UNIT_RATIO, PATH (all_to_all_net_rate_ratio), 0.01, 1 },
  { "own_rate", POD_UNIT_COUNT, PATH (own_rate_ratio), 0.005, 50 },
  { "narrow_rate", POD_UNIT_COUNT, PATH (narrow_rate_ratio), 0.1, 50 },
  { "peer_channels", POD_UNIT_COUNT, PATH (peer_channels), 1, 1024 },
  { "channel_size", POD_UNIT_BYTES, PATH (channel_bytes), 1e6, 1e12 },
  { "least", POD_UNIT_BYTES, PATH (least_bytes), 1, 1e12 },
  { "limit", POD_UNIT_BYTES, PATH (limit_bytes), 1, 1e12 },
  { "tuner_launch", POD_UNIT_SECONDS, PATH (tuner_launch_s), 1e-7, 3e-4 },
  { "tuner_step", POD_UNIT_SECONDS, PATH (tuner_step_s), 1e-8, 6e-5 },
  { "tuner_net_step", POD_UNIT_SECONDS, PATH (tuner_net_step_s), 1e-8, 6e-5 },
  { "tuner_rate", POD_UNIT_RATIO, PATH (tuner_rate_ratio), 0.05, 1 },
  { "tuner_net_rate", POD_UNIT_RATIO, PATH (tuner_net_rate_ratio), 0.05, 1 },
};

const size_t pod_n_library_numbers = G_N_ELEMENTS (pod_library_numbers);

const char *
pod_protocol_name (PodProtocol protocol)
{
  g_return_val_if_fail ((unsigned) protocol < POD_N_PROTOCOLS, "?");
  return protocol_names[protocol];
}

double *
pod_library_number (PodLibraryPath *path, size_t number)
{
  return (double *) (void *) ((char *) path + pod_library_numbers[number].offset);
}

/* ---- life ---- */

static PodLibraryPath *
path_new (void)
{
  PodLibraryPath *path = g_new0 (PodLibraryPath, 1);

  path->overlap = 1;
  path->sources = g_new0 (char *, pod_n_library_numbers);
  return path;
}

static void
path_free (gpointer data)
{
  PodLibraryPath *path = data;

  for (size_t i = 0; i < pod_n_library_numbers; i++)
    g_free (path->sources[i]);
  g_free (path->sources);
  g_free (path->algorithm);
  g_free (path);
}

static PodLibraryDevice *
device_new (void)
{
  PodLibraryDevice *device = g_new0 (PodLibraryDevice, 1);

  device->paths = g_ptr_array_new_with_free_func (path_free);
  device->notes = g_ptr_array_new_with_free_func (g_free);
  return device;
}

void
pod_library_device_free (PodLibraryDevice *device)
{
  if (device == NULL)
    return;
  g_strfreev (device->chips);
  g_free (device->channels_source);
  g_free (device->tree_channel_source);
  g_free (device->source);
  g_free (device->date);
  g_ptr_array_unref (device->paths);
  g_ptr_array_unref (device->notes);
  g_free (device);
}

static void
free_device (gpointer data)
{
  pod_library_device_free (data);
}

static PodLibraryPath *
path_copy (const PodLibraryPath *from)
{
  PodLibraryPath *to = g_memdup2 (from, sizeof *from);

  to->algorithm = g_strdup (from->algorithm);
  to->sources = g_new0 (char *, pod_n_library_numbers);
  for (size_t k = 0; k < pod_n_library_numbers; k++)
    to->sources[k] = g_strdup (from->sources[k]);
  return to;
}

PodLibraryDevice *
pod_library_device_copy (const PodLibraryDevice *device)
{
  PodLibraryDevice *copy = g_memdup2 (device, sizeof *device);

  copy->chips = g_strdupv (device->chips);
  copy->channels_source = g_strdup (device->channels_source);
  copy->tree_channel_source = g_strdup (device->tree_channel_source);
  copy->source = g_strdup (device->source);
  copy->date = g_strdup (device->date);
  copy->paths = g_ptr_array_new_with_free_func (path_free);
  copy->notes = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < device->paths->len; i++)
    g_ptr_array_add (copy->paths, path_copy (g_ptr_array_index (device->paths, i)));
  for (guint i = 0; i < device->notes->len; i++)
    g_ptr_array_add (copy->notes, g_strdup (g_ptr_array_index (device->notes, i)));
  return copy;
}

void
pod_library_free (PodLibrary *library)
{
  if (library == NULL)
    return;
  g_free (library->name);
  g_free (library->title);
  g_free (library->file);
  g_free (library->based_on);
  g_ptr_array_unref (library->devices);
  g_free (library);
}

/* ---- reading ---- */

static bool
read_kinds (const PodXml *xml, PodXmlNode *node, unsigned *out, GError **error)
{
  g_autofree char *text = pod_xml_attr (node, "kinds");
  g_auto (GStrv) words = g_strsplit (text != NULL ? text : "", " ", -1);

  *out = 0;
  for (char **word = words; *word != NULL; word++)
    {
      PodCollectiveKind kind;
      g_autoptr (GError) problem = NULL;

      if (**word == '\0')
        continue;
      if (!pod_collective_parse (*word, &kind, &problem))
        return pod_xml_error (xml, node, error, "%s", problem->message);
      *out |= 1U << kind;
    }
  return *out != 0 || pod_xml_error (xml, node, error, "a path needs kinds");
}

static bool
read_number (const PodXml *xml, PodXmlNode *node, PodLibraryPath *path, GError **error)
{
  for (size_t i = 0; i < pod_n_library_numbers; i++)
    {
      double *value = pod_library_number (path, i);

      if (strcmp (node->name, pod_library_numbers[i].name) != 0)
        continue;
      if (path->sources[i] != NULL)
        return pod_xml_error (xml, node, error, "%s stands twice", pod_library_numbers[i].name);
      path->sources[i] = pod_xml_attr (node, "source");
      if (path->sources[i] == NULL)
        return pod_xml_error (xml, node, error, "%s needs a source", pod_library_numbers[i].name);
      if (!pod_xml_get_quantity (xml, node, "value", pod_library_numbers[i].unit, true, value,
                                 error))
        return false;
      return true;
    }
  return pod_xml_error (xml, node, error, "'%s' is no number of a path", node->name);
}

static bool
check_path (const PodXml *xml, PodXmlNode *node, const PodLibraryPath *path, GError **error)
{
  if (!(path->rate_ratio > 0))
    return pod_xml_error (xml, node, error, "a path needs a rate above 0");
  for (size_t i = 0; i < pod_n_library_numbers; i++)
    if (pod_library_numbers[i].unit == POD_UNIT_RATIO
        && *pod_library_number ((PodLibraryPath *) path, i) > 1)
      return pod_xml_error (xml, node, error, "%s is a part, so it cannot be above 1",
                            pod_library_numbers[i].name);
  if (path->widen_ratio > 0 && !(path->widen_bytes > 0))
    return pod_xml_error (xml, node, error, "widen needs a widen_size above 0");
  if (path->channel_bytes > 0 && !(path->peer_channels >= 1))
    return pod_xml_error (xml, node, error, "channel_size needs peer_channels");
  return path->overlap >= 1 || pod_xml_error (xml, node, error, "overlap must be 1 or more");
}

static bool
read_path (const PodXml *xml, PodXmlNode *node, PodLibraryDevice *device, GError **error)
{
  PodLibraryPath *path = path_new ();
  g_autofree char *protocol = pod_xml_attr (node, "protocol");

  g_ptr_array_add (device->paths, path);
  path->algorithm = pod_xml_attr (node, "algorithm");
  path->protocol = POD_N_PROTOCOLS;
  for (unsigned i = 0; i < POD_N_PROTOCOLS; i++)
    if (g_strcmp0 (protocol, protocol_names[i]) == 0)
      path->protocol = (PodProtocol) i;
  if (path->algorithm == NULL || path->protocol == POD_N_PROTOCOLS)
    return pod_xml_error (xml, node, error,
                          "a path needs an algorithm, and a protocol of ll, ll128 or simple");
  if (!read_kinds (xml, node, &path->kinds, error))
    return false;
  for (PodXmlNode *child = pod_xml_child (node, NULL); child != NULL;
       child = pod_xml_next (child, NULL))
    if (!read_number (xml, child, path, error))
      return false;
  return check_path (xml, node, path, error);
}

static bool
read_switch (const PodXml *xml, PodXmlNode *node, PodLibraryDevice *device, GError **error)
{
  g_autofree char *dtypes = pod_xml_attr (node, "switch_dtypes");
  g_auto (GStrv) words = g_strsplit (dtypes != NULL ? dtypes : "", " ", -1);
  uint64_t ranks = 2, channels = 0, sms = 0;

  for (char **word = words; *word != NULL; word++)
    {
      PodDtype dtype;
      g_autoptr (GError) problem = NULL;

      if (**word == '\0')
        continue;
      if (!pod_dtype_parse (*word, &dtype, &problem))
        return pod_xml_error (xml, node, error, "switch_dtypes: %s", problem->message);
      device->switch_dtypes |= 1U << dtype;
    }
  if (!pod_xml_get_whole (xml, node, "min_switch_ranks", POD_UNIT_COUNT, false, &ranks, error)
      || !pod_xml_get_whole (xml, node, "channels", POD_UNIT_COUNT, false, &channels, error)
      || !pod_xml_get_whole (xml, node, "sms", POD_UNIT_COUNT, false, &sms, error))
    return false;
  if (MAX (MAX (ranks, channels), sms) > 1 << 20)
    return pod_xml_error (xml, node, error, "min_switch_ranks, channels and sms are at most 2^20");
  device->min_switch_ranks = (unsigned) ranks;
  device->n_channels = (unsigned) channels;
  device->n_sms = (unsigned) sms;
  device->channels_source = pod_xml_attr (node, "channels_source");
  if (channels + sms > 0 && device->channels_source == NULL)
    return pod_xml_error (xml, node, error, "channels and sms need a channels_source");
  return true;
}

static const char *const tree_channel_attributes[] = { "tree_channel_rate_2", "tree_channel_rate" };

static bool
read_tree_channels (const PodXml *xml, PodXmlNode *node, PodLibraryDevice *device, GError **error)
{
  for (size_t k = 0; k < G_N_ELEMENTS (tree_channel_attributes); k++)
    {
      double *rate = &device->tree_channel_bytes_per_s[k];

      if (!pod_xml_get_quantity (xml, node, tree_channel_attributes[k], POD_UNIT_BYTES_PER_S, false,
                                 rate, error))
        return false;
      if (!(*rate >= 0 && *rate < 1e15))
        return pod_xml_error (xml, node, error, "%s must be a rate", tree_channel_attributes[k]);
    }
  device->tree_channel_source = pod_xml_attr (node, "tree_channel_source");
  if ((device->tree_channel_bytes_per_s[0] > 0) != (device->tree_channel_bytes_per_s[1] > 0)
      || (device->tree_channel_bytes_per_s[0] > 0) != (device->tree_channel_source != NULL))
    return pod_xml_error (
        xml, node, error,
        "tree_channel_rate_2, tree_channel_rate and tree_channel_source go together");
  return true;
}

static bool
read_device (const PodXml *xml, PodXmlNode *node, PodLibrary *library, GError **error)
{
  PodLibraryDevice *device = device_new ();
  g_autofree char *chips = pod_xml_attr (node, "chips");

  g_ptr_array_add (library->devices, device);
  if (chips == NULL || *chips == '\0')
    return pod_xml_error (xml, node, error, "a device needs chips");
  device->chips = g_strsplit (chips, " ", -1);
  device->source = pod_xml_attr (node, "source");
  device->date = pod_xml_attr (node, "date");
  if (!read_switch (xml, node, device, error) || !read_tree_channels (xml, node, device, error))
    return false;
  for (PodXmlNode *child = pod_xml_child (node, NULL); child != NULL;
       child = pod_xml_next (child, NULL))
    {
      if (strcmp (child->name, "note") == 0)
        {
          char *text = pod_xml_attr (child, "text");

          if (text != NULL)
            g_ptr_array_add (device->notes, text);
        }
      else if (!read_path (xml, child, device, error))
        return false;
    }
  return true;
}

/* Is one of the first @n paths of @device for what @path is for? */
static bool
has_path (const PodLibraryDevice *device, guint n, const PodLibraryPath *path)
{
  for (guint i = 0; i < n; i++)
    {
      const PodLibraryPath *own = g_ptr_array_index (device->paths, i);

      if (strcmp (own->algorithm, path->algorithm) == 0 && own->protocol == path->protocol
          && (own->kinds & path->kinds) != 0)
        return true;
    }
  return false;
}

static void
add_missing_paths (PodLibraryDevice *device, const PodLibraryDevice *from)
{
  guint n_own = device->paths->len;

  for (guint i = 0; i < from->paths->len; i++)
    {
      const PodLibraryPath *path = g_ptr_array_index (from->paths, i);

      if (!has_path (device, n_own, path))
        g_ptr_array_add (device->paths, path_copy (path));
    }
}

/* Devices after "*" have its paths but for those that they give themselves: so a template says
 * what its devices share. */
static void
take_common_paths (PodLibrary *library)
{
  const PodLibraryDevice *any = NULL;

  for (guint i = 0; i < library->devices->len; i++)
    {
      PodLibraryDevice *device = g_ptr_array_index (library->devices, i);

      if (!pod_library_device_is_fitted (device))
        any = device;
      else if (any != NULL)
        add_missing_paths (device, any);
    }
}

static PodLibrary *
read_library (const PodXml *xml, GError **error)
{
  g_autoptr (PodLibrary) library = g_new0 (PodLibrary, 1);
  PodXmlNode *root = pod_xml_root (xml);

  library->devices = g_ptr_array_new_with_free_func (free_device);
  library->file = g_strdup (xml->file);
  library->name = pod_xml_attr (root, "name");
  library->title = pod_xml_attr (root, "title");
  library->based_on = pod_xml_attr (root, "based_on");
  if (library->name == NULL || library->title == NULL)
    {
      pod_xml_error (xml, root, error, "a library needs a name and a title");
      return NULL;
    }
  for (PodXmlNode *node = pod_xml_child (root, "device"); node != NULL;
       node = pod_xml_next (node, "device"))
    if (!read_device (xml, node, library, error))
      return NULL;
  take_common_paths (library);
  return g_steal_pointer (&library);
}

/* ---- finding ---- */

/* "nccl" is the last of "nccl-...". Returns: (transfer full) (nullable) */
static char *
find_file (const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = NULL;
  g_autofree char *prefix = g_strconcat (name, "-", NULL);
  g_autofree char *with_suffix = g_strconcat (name, ".xml", NULL);
  g_autoptr (GString) known = g_string_new (NULL);
  const char *last = NULL;
  char *file;

  if (strchr (name, '/') != NULL || g_str_has_suffix (name, ".xml"))
    file = pod_data_find ("topologies/libraries", name, ".xml");
  else
    file = pod_data_find ("topologies/libraries", with_suffix, ".xml");
  if (file != NULL)
    return file;
  names = pod_data_list ("topologies/libraries", ".xml");
  for (guint i = 0; i < names->len; i++)
    {
      const char *known_name = g_ptr_array_index (names, i);

      g_string_append_printf (known, "%s%s", i > 0 ? " " : "", known_name);
      if (g_str_has_prefix (known_name, prefix))
        last = known_name;
    }
  if (last != NULL)
    {
      g_autofree char *versioned = g_strconcat (last, ".xml", NULL);

      return pod_data_find ("topologies/libraries", versioned, ".xml");
    }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "unknown library '%s', known are %s", name,
               known->str);
  return NULL;
}

PodLibrary *
pod_library_load_alone (const char *name, GError **error)
{
  g_autofree char *file = find_file (name, error);
  g_autofree char *schema = NULL;
  g_autoptr (PodXml) xml = NULL;

  if (file == NULL)
    return NULL;
  schema = pod_data_find ("topologies/libraries", "library.xsd", ".xsd");
  if (schema == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "the schema topologies/libraries/library.xsd is missing: set PODSIM_PATH");
      return NULL;
    }
  xml = pod_xml_load (file, schema, error);
  return xml != NULL ? read_library (xml, error) : NULL;
}

PodLibrary *
pod_library_load (const char *name_or_file, GError **error)
{
  g_autoptr (PodLibrary) library = NULL;
  g_autoptr (PodLibrary) base = NULL;

  g_return_val_if_fail (name_or_file != NULL, NULL);
  library = pod_library_load_alone (name_or_file, error);
  if (library == NULL || library->based_on == NULL)
    return g_steal_pointer (&library);
  base = pod_library_load_alone (library->based_on, error);
  if (base == NULL)
    {
      g_prefix_error (error, "%s: based_on: ", library->file);
      return NULL;
    }
  if (base->based_on != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: based_on: %s is itself based on %s",
                   library->file, base->name, base->based_on);
      return NULL;
    }
  for (guint i = 0; i < base->devices->len; i++)
    g_ptr_array_add (library->devices,
                     pod_library_device_copy (g_ptr_array_index (base->devices, i)));
  return g_steal_pointer (&library);
}

const char *
pod_library_default (const PodChip *chip)
{
  for (size_t i = 0; chip != NULL && i < G_N_ELEMENTS (defaults); i++)
    if (g_strcmp0 (chip->vendor, defaults[i].vendor) == 0)
      return defaults[i].library;
  return NULL;
}

bool
pod_library_device_is_fitted (const PodLibraryDevice *device)
{
  return strcmp (device->chips[0], "*") != 0;
}

const PodLibraryDevice *
pod_library_device (const PodLibrary *library, const PodChip *chip)
{
  const PodLibraryDevice *any = NULL;

  if (library == NULL || chip == NULL)
    return NULL;
  for (guint i = 0; i < library->devices->len; i++)
    {
      const PodLibraryDevice *device = g_ptr_array_index (library->devices, i);

      if (g_strv_contains ((const char *const *) device->chips, chip->name))
        return device;
      if (any == NULL && !pod_library_device_is_fitted (device) && chip->family != POD_FAMILY_TPU)
        any = device;
    }
  return any;
}

char *
pod_library_describe (const PodLibrary *library, const PodChip *chip)
{
  const PodLibraryDevice *device = pod_library_device (library, chip);

  if (device == NULL)
    return g_strdup_printf (
        "collectives by library %s, which has no table for %s: launch floor and "
        "network efficiency of the chip",
        library->name, chip->name);
  if (!pod_library_device_is_fitted (device))
    return g_strdup_printf ("collectives by library %s, which was not fitted to %s: the table of "
                            "similar chips, with this one's link rates and launch floor",
                            library->name, chip->name);
  return g_strdup_printf ("collectives by library %s, fitted to %s", library->name,
                          device->chips[0]);
}

/* ---- writing ---- */

static void
append_attribute (GString *out, const char *name, const char *value)
{
  g_autofree char *escaped = NULL;

  if (value == NULL)
    return;
  escaped = g_markup_escape_text (value, -1);
  g_string_append_printf (out, " %s=\"%s\"", name, escaped);
}

/* Four digits: what the file says is what the model uses, so a fit rounds first. Returns: (transfer
 * full) */
static char *
format_number (PodUnit unit, double value)
{
  char digits[G_ASCII_DTOSTR_BUF_SIZE];

  g_ascii_formatd (digits, sizeof digits, "%.4g", unit == POD_UNIT_SECONDS ? value * 1e6 : value);
  return g_strconcat (digits,
                      unit == POD_UNIT_SECONDS ? " us"
                      : unit == POD_UNIT_BYTES ? " B"
                                               : "",
                      NULL);
}

static void
append_path (GString *out, const PodLibraryPath *path)
{
  g_autoptr (GString) kinds = g_string_new (NULL);

  for (unsigned k = 0; k < POD_N_COLLECTIVES; k++)
    if (path->kinds >> k & 1)
      g_string_append_printf (kinds, "%s%s", kinds->len > 0 ? " " : "", pod_collective_name (k));
  g_string_append (out, "    <path");
  append_attribute (out, "algorithm", path->algorithm);
  append_attribute (out, "protocol", pod_protocol_name (path->protocol));
  append_attribute (out, "kinds", kinds->str);
  g_string_append (out, ">\n");
  for (size_t i = 0; i < pod_n_library_numbers; i++)
    {
      double value = *pod_library_number ((PodLibraryPath *) path, i);
      g_autofree char *text = format_number (pod_library_numbers[i].unit, value);

      if (path->sources[i] == NULL)
        continue;
      g_string_append_printf (out, "      <%s", pod_library_numbers[i].name);
      append_attribute (out, "value", text);
      append_attribute (out, "source", path->sources[i]);
      g_string_append (out, "/>\n");
    }
  g_string_append (out, "    </path>\n");
}

static void
append_device (GString *out, const PodLibraryDevice *device)
{
  g_autofree char *chips = g_strjoinv (" ", device->chips);
  g_autoptr (GString) dtypes = g_string_new (NULL);

  g_string_append (out, "  <device");
  append_attribute (out, "chips", chips);
  for (unsigned d = 0; d < POD_N_DTYPES; d++)
    if (device->switch_dtypes >> d & 1)
      g_string_append_printf (dtypes, "%s%s", dtypes->len > 0 ? " " : "", pod_dtype_name (d));
  if (dtypes->len > 0)
    {
      append_attribute (out, "switch_dtypes", dtypes->str);
      g_string_append_printf (out, " min_switch_ranks=\"%u\"", device->min_switch_ranks);
    }
  if (device->n_channels > 0)
    g_string_append_printf (out, " channels=\"%u\"", device->n_channels);
  if (device->n_sms > 0)
    g_string_append_printf (out, " sms=\"%u\"", device->n_sms);
  append_attribute (out, "channels_source", device->channels_source);
  for (size_t k = 0; k < G_N_ELEMENTS (tree_channel_attributes); k++)
    if (device->tree_channel_bytes_per_s[k] > 0)
      {
        g_autofree char *rate = pod_format_double (device->tree_channel_bytes_per_s[k] / 1e9);

        g_string_append_printf (out, " %s=\"%s GB/s\"", tree_channel_attributes[k], rate);
      }
  append_attribute (out, "tree_channel_source", device->tree_channel_source);
  append_attribute (out, "date", device->date);
  append_attribute (out, "source", device->source);
  g_string_append (out, ">\n");
  for (guint i = 0; i < device->notes->len; i++)
    {
      g_string_append (out, "    <note");
      append_attribute (out, "text", g_ptr_array_index (device->notes, i));
      g_string_append (out, "/>\n");
    }
  for (guint i = 0; i < device->paths->len; i++)
    append_path (out, g_ptr_array_index (device->paths, i));
  g_string_append (out, "  </device>\n");
}

char *
pod_library_to_xml (const PodLibrary *library)
{
  GString *out = g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<library");

  append_attribute (out, "name", library->name);
  append_attribute (out, "title", library->title);
  append_attribute (out, "based_on", library->based_on);
  g_string_append (out, ">\n");
  for (guint i = 0; i < library->devices->len; i++)
    append_device (out, g_ptr_array_index (library->devices, i));
  g_string_append (out, "</library>\n");
  return g_string_free (out, FALSE);
}
