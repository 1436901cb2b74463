#include "search/families.h"

#include <string.h>

struct PodFamilies
{
  GMutex lock;
  GHashTable *by_reason; /* utf8 -> PodSearchFamily */
};

static void
family_free (void *data)
{
  PodSearchFamily *family = data;

  g_free (family->reason);
  g_free (family->message);
  g_ptr_array_unref (family->values);
  g_free (family);
}

PodFamilies *
pod_families_new (void)
{
  PodFamilies *families = g_new0 (PodFamilies, 1);

  g_mutex_init (&families->lock);
  families->by_reason = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, family_free);
  return families;
}

void
pod_families_free (PodFamilies *families)
{
  if (families == NULL)
    return;
  g_hash_table_unref (families->by_reason);
  g_mutex_clear (&families->lock);
  g_free (families);
}

/* The reason, and the number that does not divide or what cannot be placed, NULL where the message names none. */
static char *
split_message (const char *message, char **out_value)
{
  static const char words[] = " is not a multiple of ";
  static const char cut[] = " cannot be cut out of ";
  const char *start = g_str_has_prefix (message, "--") && strstr (message, ": ") != NULL ? strstr (message, ": ") + 2 : message;
  const char *multiple = strstr (start, words);
  const char *colon = multiple != NULL ? strstr (multiple, "): ") : NULL;
  const char *open = colon != NULL ? g_strrstr_len (multiple, colon - multiple, " (") : NULL;

  *out_value = NULL;
  if (strstr (start, cut) != NULL) /* "fsdp=512 tp=2 cannot be cut out of ..." */
    {
      *out_value = g_strndup (start, (gsize) (strstr (start, cut) - start));
      return g_strdup (strstr (start, cut) + 1);
    }
  if (open == NULL)
    return g_strndup (start, strcspn (start, ";"));
  *out_value = g_strndup (open + 2, (gsize) (colon - open - 2));
  return g_strndup (start, (gsize) (open - start));
}

void
pod_families_add (PodFamilies *families, uint64_t candidate, uint64_t n, const char *message)
{
  g_autofree char *value = NULL;
  g_autofree char *reason = split_message (message, &value);
  PodSearchFamily *family;

  g_mutex_lock (&families->lock);
  family = g_hash_table_lookup (families->by_reason, reason);
  if (family == NULL)
    {
      family = g_new0 (PodSearchFamily, 1);
      family->reason = g_steal_pointer (&reason);
      family->values = g_ptr_array_new_with_free_func (g_free);
      family->first = UINT64_MAX;
      g_hash_table_insert (families->by_reason, family->reason, family);
    }
  family->n += n;
  if (candidate < family->first)
    {
      family->first = candidate;
      g_free (family->message);
      family->message = g_strdup (message);
    }
  if (value != NULL && !g_ptr_array_find_with_equal_func (family->values, value, g_str_equal, NULL))
    g_ptr_array_add (family->values, g_steal_pointer (&value));
  g_mutex_unlock (&families->lock);
}

static gint
compare_families (gconstpointer a, gconstpointer b)
{
  const PodSearchFamily *x = *(const PodSearchFamily *const *) a;
  const PodSearchFamily *y = *(const PodSearchFamily *const *) b;

  if (x->n != y->n)
    return x->n > y->n ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* By number where both are, which they are but for the longest. */
static gint
compare_values (gconstpointer a, gconstpointer b)
{
  const char *x = *(const char *const *) a;
  const char *y = *(const char *const *) b;

  return strlen (x) != strlen (y) ? (strlen (x) < strlen (y) ? -1 : 1) : strcmp (x, y);
}

GPtrArray *
pod_families_list (PodFamilies *families)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (family_free);
  GHashTableIter iter;
  void *family;

  g_mutex_lock (&families->lock);
  g_hash_table_iter_init (&iter, families->by_reason);
  while (g_hash_table_iter_next (&iter, NULL, &family))
    {
      g_ptr_array_sort (((PodSearchFamily *) family)->values, compare_values);
      g_ptr_array_add (list, family);
      g_hash_table_iter_steal (&iter);
    }
  g_mutex_unlock (&families->lock);
  g_ptr_array_sort (list, compare_families);
  return list;
}
