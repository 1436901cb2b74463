#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>
#include <zlib.h>

#include "base/error.h"

enum
{
  BUFFER_BYTES = 64 << 10,
};

struct PodOutput
{
  char *file;      /* as the caller named it, for messages */
  char *target;    /* (nullable) what @temporary is renamed to: @file, or where its links lead;
                      NULL when written directly: stdout, devices, FIFOs */
  char *temporary; /* (nullable) NULL, too, as long as it has no name */
  int fd;
  int saved_errno; /* of the first failed write, 0 while all is well */
  bool is_gzip;
  z_stream stream;
  GString *scratch; /* of printf */
  size_t n_buffered;
  unsigned char buffer[BUFFER_BYTES];
};

static void
set_io_error (GError **error, const char *file, int saved_errno)
{
  g_set_error (error, POD_ERROR, POD_ERROR_IO, "%s: cannot write: %s", file,
               g_strerror (saved_errno));
}

static void
write_to_fd (PodOutput *output, const unsigned char *data, size_t n_bytes)
{
  while (n_bytes > 0 && output->saved_errno == 0)
    {
      ssize_t n_written = write (output->fd, data, n_bytes);
      if (n_written >= 0)
        {
          data += n_written;
          n_bytes -= (size_t) n_written;
        }
      else if (errno == EAGAIN) /* stdout can be a pipe that somebody else made non-blocking */
        {
          struct pollfd waiting = { .fd = output->fd, .events = POLLOUT };
          poll (&waiting, 1, -1);
        }
      else if (errno != EINTR)
        output->saved_errno = errno;
    }
}

static void
deflate_to_fd (PodOutput *output, const unsigned char *data, size_t n_bytes, int flush)
{
  unsigned char chunk[BUFFER_BYTES / 4];

  output->stream.next_in = (z_const Bytef *) data;
  output->stream.avail_in = (uInt) n_bytes;
  do
    {
      output->stream.next_out = chunk;
      output->stream.avail_out = sizeof chunk;
      int status = deflate (&output->stream, flush);
      g_assert (status != Z_STREAM_ERROR);
      write_to_fd (output, chunk, sizeof chunk - output->stream.avail_out);
    }
  while (output->stream.avail_out == 0 && output->saved_errno == 0);
}

static void
pass_on (PodOutput *output, const unsigned char *data, size_t n_bytes)
{
  if (output->saved_errno != 0)
    return;
  if (output->is_gzip)
    deflate_to_fd (output, data, n_bytes, Z_NO_FLUSH);
  else
    write_to_fd (output, data, n_bytes);
}

static void
flush_buffer (PodOutput *output)
{
  pass_on (output, output->buffer, output->n_buffered);
  output->n_buffered = 0;
}

static bool
open_directly (PodOutput *output, GError **error)
{
  output->fd = g_open (output->file, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0);
  if (output->fd >= 0)
    return true;
  set_io_error (error, output->file, errno);
  return false;
}

/* Where a file without a name can be had by one. Returns: (transfer full) */
static char *
descriptor_path (int fd)
{
  return g_strdup_printf ("/proc/self/fd/%d", fd);
}

/* A file without a name in @folder: whatever ends the program, nothing stays behind. -1 where the
 * file system has no such files, or where /proc, which gives it its name in the end, is missing. */
static int
open_nameless (const char *folder)
{
#ifdef O_TMPFILE
  int fd = g_open (folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  g_autofree char *path = descriptor_path (fd);

  if (fd >= 0 && access (path, F_OK) == 0)
    return fd;
  if (fd >= 0)
    close (fd);
#else
  (void) folder;
#endif
  return -1;
}

/* Gives the file without a name a temporary one; false with errno set. */
static bool
name_nameless (PodOutput *output)
{
  enum
  {
    MAX_TRIES = 100, /* of names that are taken, by a process of that number in another container */
  };
  g_autofree char *path = descriptor_path (output->fd);
  g_autofree char *folder = g_path_get_dirname (output->target);

  for (unsigned i = 0; i < MAX_TRIES; i++)
    {
      g_autofree char *base = g_strdup_printf (".podsim-%ld-%u", (long) getpid (), i);
      g_autofree char *name = g_build_filename (folder, base, NULL);

      if (linkat (AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0)
        {
          output->temporary = g_steal_pointer (&name);
          return true;
        }
      if (errno != EEXIST)
        return false;
    }
  return false;
}

/* @status: (nullable) of the file that is there now; its permissions are kept. */
static bool
open_temporary (PodOutput *output, const struct stat *status, GError **error)
{
  /* A rename would write over a link; and over a read-only file, for it needs only the folder. */
  if (status != NULL)
    {
      char *resolved = realpath (output->file, NULL);
      if (resolved == NULL || access (resolved, W_OK) != 0)
        {
          set_io_error (error, output->file, errno);
          free (resolved);
          return false;
        }
      output->target = g_strdup (resolved);
      free (resolved);
    }
  else
    output->target = g_strdup (output->file);
  g_autofree char *folder = g_path_get_dirname (output->target);
  output->fd = open_nameless (folder);
  if (output->fd < 0)
    {
      output->temporary = g_build_filename (folder, ".podsim-XXXXXX", NULL);
      output->fd = g_mkstemp_full (output->temporary, O_WRONLY | O_CLOEXEC, 0666);
    }
  if (output->fd < 0)
    {
      set_io_error (error, output->file, errno);
      g_clear_pointer (&output->temporary, g_free);
      return false;
    }
  if (status != NULL && fchmod (output->fd, status->st_mode & 0777) != 0)
    {
      set_io_error (error, output->file, errno);
      return false;
    }
  return true;
}

static bool
open_target (PodOutput *output, GError **error)
{
  struct stat status;

  if (g_str_equal (output->file, "-"))
    {
      output->fd = STDOUT_FILENO;
      return true;
    }
  if (*output->file == '\0' || g_str_has_suffix (output->file, G_DIR_SEPARATOR_S))
    {
      set_io_error (error, output->file, *output->file == '\0' ? ENOENT : EISDIR);
      return false;
    }
  if (stat (output->file, &status) == 0)
    return S_ISREG (status.st_mode) ? open_temporary (output, &status, error)
                                    : open_directly (output, error);
  return open_temporary (output, NULL, error);
}

PodOutput *
pod_output_open (const char *file, bool is_gzip, GError **error)
{
  g_return_val_if_fail (file != NULL, NULL);

  g_autoptr (PodOutput) output = g_new0 (PodOutput, 1);
  output->file = g_strdup (file);
  output->scratch = g_string_new (NULL);
  output->fd = -1;
  if (!open_target (output, error))
    return NULL;
  if (is_gzip)
    {
      enum
      {
        GZIP_HEADER = 16 + MAX_WBITS, /* zlib.h: no name and time 0, so equal text is equal bytes */
        MEMORY_LEVEL = 8,             /* zlib's default */
      };
      int result = deflateInit2 (&output->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_HEADER,
                                 MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
      g_assert (result == Z_OK);
      output->is_gzip = true;
    }
  return g_steal_pointer (&output);
}

void
pod_output_write (PodOutput *output, const void *data, size_t n_bytes)
{
  g_return_if_fail (output != NULL && (data != NULL || n_bytes == 0));

  const unsigned char *bytes = data;
  while (n_bytes > 0)
    {
      size_t n_copied = MIN (n_bytes, BUFFER_BYTES - output->n_buffered);
      memcpy (output->buffer + output->n_buffered, bytes, n_copied);
      output->n_buffered += n_copied;
      bytes += n_copied;
      n_bytes -= n_copied;
      if (output->n_buffered == BUFFER_BYTES)
        flush_buffer (output);
    }
}

void
pod_output_printf (PodOutput *output, const char *format, ...)
{
  va_list arguments;

  g_return_if_fail (output != NULL && format != NULL);

  va_start (arguments, format);
  g_string_vprintf (output->scratch, format, arguments);
  va_end (arguments);
  pod_output_write (output, output->scratch->str, output->scratch->len);
}

/* Closes the file, but not stdout, which others still write to. */
static void
close_fd (PodOutput *output)
{
  if (output->fd > STDOUT_FILENO && close (output->fd) != 0 && output->saved_errno == 0
      && errno != EINTR)
    output->saved_errno = errno; /* network file systems tell of a full disk only here */
  output->fd = -1;
}

void
pod_output_abandon (PodOutput *output)
{
  if (output == NULL)
    return;
  close_fd (output);
  if (output->temporary != NULL)
    g_unlink (output->temporary);
  if (output->is_gzip)
    deflateEnd (&output->stream);
  g_string_free (output->scratch, TRUE);
  g_free (output->temporary);
  g_free (output->target);
  g_free (output->file);
  g_free (output);
}

/* Writes what is left, closes, and renames to @target when the output has a temporary file; frees.
 */
static bool
finish (PodOutput *unfinished, const char *target, GError **error)
{
  g_autoptr (PodOutput) output = unfinished;

  flush_buffer (output);
  if (output->is_gzip && output->saved_errno == 0)
    deflate_to_fd (output, NULL, 0, Z_FINISH);
  if (output->saved_errno == 0 && output->target != NULL && output->temporary == NULL
      && !name_nameless (output))
    output->saved_errno = errno;
  close_fd (output);
  if (output->saved_errno == 0 && output->temporary != NULL)
    {
      if (g_rename (output->temporary, target) != 0)
        output->saved_errno = errno;
      else
        g_clear_pointer (&output->temporary, g_free);
    }
  if (output->saved_errno == 0)
    return true;
  set_io_error (error, g_str_equal (output->file, "-") ? "standard output" : output->file,
                output->saved_errno);
  return false;
}

bool
pod_output_close (PodOutput *output, GError **error)
{
  g_return_val_if_fail (output != NULL, false);

  return finish (output, output->target, error);
}

char *
pod_output_partial_name (const char *target)
{
  const char *slash = strrchr (target, G_DIR_SEPARATOR);
  const char *base = slash != NULL ? slash + 1 : target;
  size_t n_bytes = strlen (base);
  size_t n_searched = g_str_has_suffix (base, ".gz") ? n_bytes - strlen (".gz") : n_bytes;
  const char *dot = g_strrstr_len (base, (gssize) n_searched, ".");

  if (dot == NULL || dot == base)
    dot = base + n_searched;
  return g_strdup_printf ("%.*s.partial%s", (int) (dot - target), target, dot);
}

bool
pod_output_keep_partial (PodOutput *output, GError **error)
{
  g_return_val_if_fail (output != NULL, false);

  g_autofree char *target = output->target != NULL ? pod_output_partial_name (output->target) : NULL;
  return finish (output, target, error);
}

bool
pod_output_save (const char *file, const char *text, GError **error)
{
  g_return_val_if_fail (file != NULL && text != NULL, false);

  g_autoptr (PodOutput) output = pod_output_open (file, false, error);
  if (output == NULL)
    return false;
  pod_output_write (output, text, strlen (text));
  return pod_output_close (g_steal_pointer (&output), error);
}
