/* Runs a fuzz target over the files of its corpus, without libFuzzer and with any compiler: what
 * once crashed, or was refused, is tried again by every make check.
 *
 * Usage: fuzz-NAME FILE...   Prints "ok fuzz-NAME/FILE" as each comes back. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int
main (int argc, char **argv)
{
  g_autofree char *target = g_path_get_basename (argv[0]);

  for (int i = 1; i < argc; i++)
    {
      g_autofree char *name = g_path_get_basename (argv[i]);
      g_autofree char *data = NULL;
      g_autoptr (GError) error = NULL;
      size_t size = 0;

      if (!g_file_get_contents (argv[i], &data, &size, &error))
        {
          printf ("not ok %s/%s: %s\n", target, name, error->message);
          continue;
        }
      (void) LLVMFuzzerTestOneInput ((const uint8_t *) data, size);
      printf ("ok %s/%s\n", target, name);
      /* What was printed before a crash must not be lost in the buffer */
      fflush (stdout);
    }
  return 0;
}
