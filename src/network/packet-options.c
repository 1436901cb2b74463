#include "network/packet.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

/* "mtu=4KiB,store-and-forward,drop=nic+tree": the options of packet mode as text. */

static const struct
{
  const char *name;
  unsigned mask;
} families[] = {
  { "ici", 1 << POD_LINK_ICI },           { "scale-up", 1 << POD_LINK_SCALE_UP },
  { "nic", 1 << POD_LINK_NIC },           { "tree", 1 << POD_LINK_TREE },
  { "explicit", 1 << POD_LINK_EXPLICIT },
};

static bool
parse_families (const char *value, unsigned *out, GError **error)
{
  g_auto (GStrv) words = g_strsplit (value, "+", -1);

  for (char **word = words; *word != NULL; word++)
    {
      size_t i = 0;

      while (i < G_N_ELEMENTS (families) && strcmp (families[i].name, *word) != 0)
        i++;
      if (i == G_N_ELEMENTS (families))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "drop: expected ici, scale-up, nic, tree or explicit, joined by +, got '%s'",
                       *word);
          return false;
        }
      *out |= families[i].mask;
    }
  return true;
}

static bool
parse_links (const char *value, GArray *links, GError **error)
{
  g_auto (GStrv) words = g_strsplit (value, "+", -1);

  for (char **word = words; *word != NULL; word++)
    {
      uint64_t link;
      uint32_t narrow;

      if (!pod_parse_whole (*word, POD_UNIT_COUNT, &link, error))
        {
          g_prefix_error (error, "dead: link numbers, joined by +: ");
          return false;
        }
      narrow = (uint32_t) MIN (link, UINT32_MAX);
      g_array_append_val (links, narrow);
    }
  return true;
}

static bool
parse_packets (const char *value, uint32_t *out, GError **error)
{
  uint64_t n;

  if (!pod_parse_whole (value, POD_UNIT_COUNT, &n, error))
    return false;
  if (n < 1 || n > 1 << 20)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "packets: expected 1 to 1048576, got '%s'",
                   value);
      return false;
    }
  *out = (uint32_t) n;
  return true;
}

static bool
parse_bytes (const char *value, const char *name, uint64_t *out, GError **error)
{
  if (!pod_parse_whole (value, POD_UNIT_BYTES, out, error))
    return false;
  if (*out >= 1 && *out <= UINT64_C (1) << 40)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: expected 1 B to 1 TiB, got '%s'", name,
               value);
  return false;
}

static bool
parse_word (const char *word, PodPacketOptions *out, GArray *dead_links, GError **error)
{
  const char *equals = strchr (word, '=');
  g_autofree char *name
      = equals == NULL ? g_strdup (word) : g_strndup (word, (gsize) (equals - word));
  const char *value = equals == NULL ? "" : equals + 1;
  bool *flag = NULL;

  if (strcmp (name, "mtu") == 0)
    return parse_bytes (value, name, &out->mtu_bytes, error);
  if (strcmp (name, "buffer") == 0)
    return parse_bytes (value, name, &out->buffer_bytes, error);
  if (strcmp (name, "packets") == 0)
    return parse_packets (value, &out->n_packets, error);
  if (strcmp (name, "drop") == 0)
    return parse_families (value, &out->drop_kinds, error);
  if (strcmp (name, "dead") == 0)
    return parse_links (value, dead_links, error);
  if (strcmp (name, "store-and-forward") == 0)
    flag = &out->is_store_and_forward;
  else if (strcmp (name, "ecmp") == 0)
    flag = &out->is_hashed;
  else if (strcmp (name, "adaptive") == 0)
    flag = &out->is_adaptive;
  if (flag == NULL || equals != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "expected mtu=, packets=, buffer=, drop=, dead=, store-and-forward, ecmp or "
                   "adaptive, got '%s'",
                   word);
      return false;
    }
  *flag = true;
  return true;
}

bool
pod_packet_options_parse (const char *text, PodPacketOptions *out, GArray *dead_links,
                          GError **error)
{
  g_auto (GStrv) words = g_strsplit (text == NULL ? "" : text, ",", -1);

  *out = (PodPacketOptions){ 0 };
  for (char **word = words; *word != NULL; word++)
    if (!parse_word (*word, out, dead_links, error))
      return false;
  out->dead_links = (const uint32_t *) dead_links->data;
  out->n_dead_links = dead_links->len;
  return true;
}
