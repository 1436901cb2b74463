#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <glib.h>

#include "base/error.h"

/* What the fuzz targets share: each hands its input to one reader and checks what comes back. */

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* A critical or a warning of GLib is a fault as a crash is. */
static inline void
fuzz_begin (void)
{
  g_log_set_always_fatal (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
}

/* A result or an error, one of ours, with something to say; reading never fails as writing does. The error comes by
 * reference: it may be set by the very call that gives @is_good. */
static inline void
fuzz_judge (bool is_good, GError *const *error)
{
  g_assert (is_good == (*error == NULL));
  if (*error == NULL)
    return;
  g_assert ((*error)->domain == POD_ERROR);
  g_assert ((*error)->code != POD_ERROR_IO);
  g_assert (*(*error)->message != '\0');
}

/* The same of a reader of files: its message begins with the file. */
static inline void
fuzz_judge_file (bool is_good, GError *const *error, const char *file)
{
  fuzz_judge (is_good, error);
  g_assert (is_good || g_str_has_prefix ((*error)->message, file));
}

/* The input as text. Returns: (transfer full) */
static inline char *
fuzz_text (const uint8_t *data, size_t size)
{
  return g_strndup ((const char *) data, size);
}

/* The input as a regular file in memory, for readers that take a path. */
typedef struct
{
  int fd;
  char path[32];
} FuzzFile;

static inline void
fuzz_file_init (FuzzFile *file, const uint8_t *data, size_t size)
{
  file->fd = memfd_create ("fuzz", MFD_CLOEXEC);
  g_assert (file->fd >= 0);
  while (size > 0)
    {
      ssize_t n_written = write (file->fd, data, size);

      g_assert (n_written > 0);
      data += n_written;
      size -= (size_t) n_written;
    }
  g_snprintf (file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

static inline void
fuzz_file_clear (FuzzFile *file)
{
  close (file->fd);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (FuzzFile, fuzz_file_clear)
