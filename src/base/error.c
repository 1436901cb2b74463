#include "base/error.h"

#include <stdbool.h>
#include <string.h>

G_DEFINE_QUARK (pod_error_quark, pod_error)

/* A file's name may have colons itself, so each could be the one that ends it. */
static bool
begins_with_file (const char *message)
{
  enum
  {
    MAX_PATH_BYTES = 4096, /* Linux's PATH_MAX: nothing longer can be opened */
  };

  for (const char *colon = strchr (message, ':'); colon != NULL && colon - message < MAX_PATH_BYTES;
       colon = strchr (colon + 1, ':'))
    {
      g_autofree char *file = g_strndup (message, (gsize) (colon - message));

      if (g_file_test (file, G_FILE_TEST_EXISTS) && !g_file_test (file, G_FILE_TEST_IS_DIR))
        return true;
    }
  return false;
}

void
pod_error_prefix_option (GError **error, const char *option)
{
  if (error != NULL && *error != NULL && !begins_with_file ((*error)->message))
    g_prefix_error (error, "%s: ", option);
}
