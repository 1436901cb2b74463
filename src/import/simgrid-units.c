#include <math.h>
#include <string.h>

#include "base/error.h"
#include "import/simgrid-private.h"

enum
{
  MAX_HOSTS = 1 << 24,
};

/* The part of @text behind its number; NULL when there is none. */
static const char *
read_number (const char *text, double *out)
{
  char *end = NULL;

  *out = g_ascii_strtod (text, &end);
  if (end == text || !isfinite (*out) || *out < 0)
    return NULL;
  return end;
}

/* 1000^n for k M G T ..., 1024^n for Ki Mi Gi ...; *unit moves behind it. 1 when there is none. */
static double
take_prefix (const char **unit, const char *base)
{
  static const char prefixes[] = "kMGTPEZY";

  if (strcmp (*unit, base) == 0)
    return 1;
  for (unsigned i = 0; prefixes[i] != '\0'; i++)
    {
      bool is_binary = (*unit)[0] == g_ascii_toupper (prefixes[i]) && (*unit)[1] == 'i';
      if (!is_binary && (*unit)[0] != prefixes[i])
        continue;
      *unit += is_binary ? 2 : 1;
      return pow (is_binary ? 1024 : 1000, i + 1);
    }
  return 1;
}

bool
pod_sg_bandwidth (const PodXml *xml, PodXmlNode *node, const char *name, bool is_required,
                  double *out, GError **error)
{
  g_autofree char *text = pod_xml_attr (node, name);
  double number = 0;

  if (text == NULL)
    return !is_required
           || pod_xml_error (xml, node, error, "<%s> lacks the attribute %s",
                             node->name, name);
  const char *unit = read_number (text, &number);
  const char *bytes = unit;
  const char *bits = unit;
  if (unit != NULL)
    {
      double bytes_scale = take_prefix (&bytes, "Bps");
      double bits_scale = take_prefix (&bits, "bps") / 8;
      bool is_bytes = strcmp (bytes, "Bps") == 0 || *unit == '\0';
      *out = number * (is_bytes ? bytes_scale : bits_scale);
      if ((is_bytes || strcmp (bits, "bps") == 0) && *out > 0)
        return true;
    }
  return pod_xml_error (xml, node, error,
                        "<%s> %s: expected a rate above 0 such as 125MBps or 10Gbps, got '%s'",
                        node->name, name, text);
}

bool
pod_sg_time (const PodXml *xml, PodXmlNode *node, const char *name, double *out, GError **error)
{
  static const struct
  {
    const char *unit;
    double seconds;
  } units[] = {
    { "", 1 },       { "s", 1 },  { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 },
    { "ps", 1e-12 }, { "m", 60 }, { "h", 3600 },  { "d", 86400 }, { "w", 604800 },
  };
  g_autofree char *text = pod_xml_attr (node, name);
  double number = 0;

  if (text == NULL)
    return true;
  const char *unit = read_number (text, &number);
  for (size_t i = 0; unit != NULL && i < G_N_ELEMENTS (units); i++)
    if (strcmp (unit, units[i].unit) == 0)
      {
        *out = number * units[i].seconds;
        return true;
      }
  return pod_xml_error (xml, node, error, "<%s> %s: expected a time such as 50us or 0, got '%s'",
                        node->name, name, text);
}

bool
pod_sg_policy (const PodXml *xml, PodXmlNode *node, const char *name, PodSgPolicy *out,
               GError **error)
{
  static const struct
  {
    const char *text;
    PodSgPolicy policy;
  } policies[] = {
    { "SHARED", POD_SG_SHARED },
    { "SPLITDUPLEX", POD_SG_SPLITDUPLEX },
    { "FULLDUPLEX", POD_SG_SPLITDUPLEX },
    { "FATPIPE", POD_SG_FATPIPE },
  };
  g_autofree char *text = pod_xml_attr (node, name);

  if (text == NULL)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS (policies); i++)
    if (strcmp (text, policies[i].text) == 0)
      {
        *out = policies[i].policy;
        return true;
      }
  return pod_xml_error (xml, node, error,
                        "<%s> %s: expected SHARED, SPLITDUPLEX or FATPIPE, got '%s'",
                        node->name, name, text);
}

/* "7" or "0-99" */
static bool
add_range (const char *text, GArray *numbers)
{
  g_auto (GStrv) ends = g_strsplit (text, "-", 2);
  guint64 first = 0;
  guint64 last = 0;

  if (ends[0] == NULL || !g_ascii_string_to_unsigned (ends[0], 10, 0, UINT32_MAX, &first, NULL)
      || !g_ascii_string_to_unsigned (ends[1] != NULL ? ends[1] : ends[0], 10, 0, UINT32_MAX, &last,
                                      NULL)
      || last < first || last - first >= MAX_HOSTS - numbers->len)
    return false;
  for (guint64 number = first; number <= last; number++)
    {
      unsigned value = (unsigned) number;
      g_array_append_val (numbers, value);
    }
  return true;
}

GArray *
pod_sg_radical (const PodXml *xml, PodXmlNode *node, GError **error)
{
  g_autoptr (GArray) numbers = g_array_new (FALSE, FALSE, sizeof (unsigned));
  g_autofree char *text = pod_xml_attr (node, "radical");
  g_auto (GStrv) parts = g_strsplit (text != NULL ? text : "", ",", -1);

  for (unsigned i = 0; parts[i] != NULL; i++)
    if (!add_range (g_strstrip (parts[i]), numbers))
      {
        g_array_set_size (numbers, 0);
        break;
      }
  if (numbers->len > 0)
    return g_steal_pointer (&numbers);
  pod_xml_error (xml, node, error,
                 "<%s> radical: expected ranges such as 0-99,105 of at most %d hosts, got '%s'",
                 node->name, MAX_HOSTS, text != NULL ? text : "");
  return NULL;
}
