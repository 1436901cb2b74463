#include "base/file-read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>
#include <zlib.h>

#include "base/error.h"

enum
{
  CHUNK_BYTES = 64 << 10,
};

static bool
check_is_readable (const char *file, int fd, size_t limit_bytes, size_t *out_size, GError **error)
{
  struct stat status;

  if (fstat (fd, &status) != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: cannot read: %s", file,
                   g_strerror (errno));
      return false;
    }
  if (S_ISDIR (status.st_mode))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: is a directory, expected a file", file);
      return false;
    }
  if (!S_ISREG (status.st_mode))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: is not a regular file", file);
      return false;
    }
  if ((uint64_t) status.st_size > limit_bytes)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                   "%s: too big: %" G_GINT64_FORMAT " bytes, at most %zu are read", file,
                   (gint64) status.st_size, limit_bytes);
      return false;
    }
  *out_size = (size_t) status.st_size;
  return true;
}

/* To the end of the file, not to its size: files in /proc say 0, and a file may grow meanwhile. */
static bool
read_all (const char *file, int fd, size_t limit_bytes, GByteArray *bytes, GError **error)
{
  for (;;)
    {
      size_t n_before = bytes->len;
      g_byte_array_set_size (bytes, (guint) (n_before + CHUNK_BYTES));
      ssize_t n_read = read (fd, bytes->data + n_before, CHUNK_BYTES);
      int saved_errno = errno;
      g_byte_array_set_size (bytes, (guint) (n_before + (n_read > 0 ? (size_t) n_read : 0)));
      if (n_read == 0)
        return true;
      if (n_read < 0 && saved_errno != EINTR)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: cannot read: %s", file,
                       g_strerror (saved_errno));
          return false;
        }
      if (bytes->len > limit_bytes)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                       "%s: too big: over %zu bytes, at most %zu are read", file, limit_bytes,
                       limit_bytes);
          return false;
        }
    }
}

static char *
steal_text (GByteArray **bytes, size_t *out_n_bytes)
{
  *out_n_bytes = (*bytes)->len;
  g_byte_array_append (*bytes, (const guint8 *) "", 1);
  return (char *) g_byte_array_free (g_steal_pointer (bytes), FALSE);
}

char *
pod_file_read (const char *file, size_t limit_bytes, size_t *out_n_bytes, GError **error)
{
  g_return_val_if_fail (file != NULL && out_n_bytes != NULL, NULL);
  g_return_val_if_fail (limit_bytes <= G_MAXINT32, NULL);

  /* Without O_NONBLOCK the open of a FIFO that nobody writes to would hang. */
  int fd = g_open (file, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: cannot open: %s", file,
                   g_strerror (errno));
      return NULL;
    }
  size_t size = 0;
  bool is_good = check_is_readable (file, fd, limit_bytes, &size, error);
  g_autoptr (GByteArray) bytes = g_byte_array_sized_new ((guint) (size + CHUNK_BYTES));
  is_good = is_good && read_all (file, fd, limit_bytes, bytes, error);
  close (fd);
  return is_good ? steal_text (&bytes, out_n_bytes) : NULL;
}

bool
pod_gzip_is_magic (const char *data, size_t n_bytes)
{
  return n_bytes >= 2 && memcmp (data, "\x1f\x8b", 2) == 0;
}

/* Runs @stream to its end over all members; its input is set, its output is ours. */
static bool
inflate_members (z_stream *stream, const char *name, size_t n_bytes, size_t limit_bytes,
                 GByteArray *bytes, GError **error)
{
  guint8 chunk[CHUNK_BYTES / 4];

  for (;;)
    {
      stream->next_out = chunk;
      stream->avail_out = sizeof chunk;
      int status = inflate (stream, Z_NO_FLUSH);
      size_t position = n_bytes - stream->avail_in;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                       "%s: gzip stream is damaged at byte %zu: %s", name, position,
                       stream->msg != NULL ? stream->msg : zError (status));
          return false;
        }
      g_byte_array_append (bytes, chunk, (guint) (sizeof chunk - stream->avail_out));
      if (bytes->len > limit_bytes)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                       "%s: too big: the gzip stream holds over %zu bytes", name, limit_bytes);
          return false;
        }
      if (status == Z_STREAM_END)
        {
          if (stream->avail_in == 0)
            return true;
          inflateReset (stream);
        }
      else if (stream->avail_in == 0 && stream->avail_out > 0)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: gzip stream ends early at byte %zu",
                       name, n_bytes);
          return false;
        }
    }
}

char *
pod_gzip_inflate (const char *name, const char *data, size_t n_bytes, size_t limit_bytes,
                  size_t *out_n_bytes, GError **error)
{
  g_return_val_if_fail (name != NULL && data != NULL && out_n_bytes != NULL, NULL);
  g_return_val_if_fail (limit_bytes <= G_MAXINT32 && n_bytes <= G_MAXINT32, NULL);

  z_stream stream = { .next_in = (z_const Bytef *) data, .avail_in = (uInt) n_bytes };
  enum
  {
    GZIP_ONLY = 16 + MAX_WBITS, /* zlib.h: 16 more asks for a gzip header and its checksum */
  };
  int status = inflateInit2 (&stream, GZIP_ONLY);
  g_assert (status == Z_OK);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  bool is_good = inflate_members (&stream, name, n_bytes, limit_bytes, bytes, error);
  inflateEnd (&stream);
  return is_good ? steal_text (&bytes, out_n_bytes) : NULL;
}

unsigned
pod_line_at (const char *text, size_t offset)
{
  unsigned line = 1;

  for (size_t i = 0; i < offset; i++)
    line += text[i] == '\n';
  return line;
}
