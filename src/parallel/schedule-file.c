#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "parallel/schedule-private.h"

/* Reads a schedule from a file of cells, the form in which PyTorch writes its pipeline schedules. */

typedef struct
{
  const char *file;
  unsigned line;
  unsigned n_ranks;
  unsigned n_microbatches;
  GPtrArray *rows;  /* GArray of Cell by rank */
} Reader;

typedef struct
{
  uint32_t part;
  uint8_t kind;
  uint32_t microbatch;
} Cell;

static bool
parse_cell (const Reader *reader, const char *text, Cell *out, GError **error)
{
  static const struct
  {
    const char *letters;
    PodSlotKind kind;
  } kinds[] = { { "F", POD_SLOT_FORWARD }, { "B", POD_SLOT_BACKWARD }, { "I", POD_SLOT_INPUT }, { "W", POD_SLOT_WEIGHT } };
  char letters[2] = "";
  int end = 0;
  unsigned part;
  unsigned microbatch;

  if (strlen (text) < 24 && g_ascii_isdigit (text[0]) && sscanf (text, "%u%1[FBIW]%u%n", &part, letters, &microbatch, &end) == 3 && text[end] == '\0'
      && g_ascii_isdigit (text[strcspn (text, "FBIW") + 1]))
    for (unsigned k = 0; k < G_N_ELEMENTS (kinds); k++)
      if (strcmp (letters, kinds[k].letters) == 0)
        {
          if (microbatch >= reader->n_microbatches)
            {
              g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: '%s': the step has microbatches 0 to %u", reader->file, reader->line, text, reader->n_microbatches - 1);
              return false;
            }
          *out = (Cell){ .part = part, .kind = (uint8_t) kinds[k].kind, .microbatch = microbatch };
          return true;
        }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: '%s' is not a slot such as 0F3: part, kind (F, B, I or W), microbatch", reader->file, reader->line, text);
  return false;
}

static bool
parse_row (Reader *reader, const char *line, GError **error)
{
  g_auto (GStrv) words = g_strsplit (line, ",", -1);
  GArray *row = g_array_new (FALSE, FALSE, sizeof (Cell));

  g_ptr_array_add (reader->rows, row);
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      Cell cell;

      if (*g_strstrip (words[i]) == '\0')
        continue;
      if (!parse_cell (reader, words[i], &cell, error))
        return false;
      g_array_append_val (row, cell);
    }
  return true;
}

/* The chunk that @part is on @rank, in looped or V placement; false: it is elsewhere. */
static bool
chunk_of (const PodSchedule *schedule, uint32_t rank, uint32_t part, uint8_t *out)
{
  for (uint32_t c = 0; c < schedule->n_chunks; c++)
    if (pod_schedule_part (schedule, rank, c) == part)
      {
        *out = (uint8_t) c;
        return true;
      }
  return false;
}

static bool
place (const Reader *reader, PodSchedule *schedule, GError **error)
{
  for (uint32_t rank = 0; rank < schedule->n_ranks; rank++)
    {
      const GArray *row = g_ptr_array_index (reader->rows, rank);
      GArray *slots = g_array_sized_new (FALSE, FALSE, sizeof (PodSlot), row->len);

      g_ptr_array_add (schedule->slots, slots);
      for (guint i = 0; i < row->len; i++)
        {
          const Cell *cell = &g_array_index (row, Cell, i);
          PodSlot slot = { .kind = cell->kind, .microbatch = cell->microbatch };

          if (!chunk_of (schedule, rank, cell->part, &slot.chunk))
            {
              g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                           "%s: part %u stands on rank %u: parts go round the ranks (part %% %u) or there and back (2 x %u parts)", reader->file, cell->part, rank,
                           schedule->n_ranks, schedule->n_ranks);
              return false;
            }
          g_array_append_val (slots, slot);
        }
    }
  return true;
}

/* Chunks of a rank, and whether the last rank holds parts p-1 and p: there and back. */
static bool
recognise (const Reader *reader, uint32_t *out_n_chunks, bool *out_is_v, GError **error)
{
  uint32_t n_parts = 0;

  *out_is_v = false;
  for (guint rank = 0; rank < reader->rows->len; rank++)
    {
      const GArray *row = g_ptr_array_index (reader->rows, rank);

      for (guint i = 0; i < row->len; i++)
        {
          const uint32_t part = g_array_index (row, Cell, i).part;

          n_parts = MAX (n_parts, part + 1);
          if (rank == reader->n_ranks - 1 && part == reader->n_ranks && reader->n_ranks > 1)
            *out_is_v = true;
        }
    }
  if (n_parts == 0 || n_parts % reader->n_ranks != 0 || n_parts / reader->n_ranks > POD_MAX_CHUNKS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s: %u parts are not a multiple of pp=%u, or more than %d a rank", reader->file, n_parts, reader->n_ranks,
                   POD_MAX_CHUNKS);
      return false;
    }
  *out_n_chunks = n_parts / reader->n_ranks;
  return true;
}

static bool
read_rows (Reader *reader, GError **error)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  size_t n_bytes;

  text = pod_file_read (reader->file, POD_FILE_LIMIT_BYTES, &n_bytes, error);
  if (text == NULL)
    return false;
  lines = g_strsplit (text, "\n", -1);
  for (unsigned i = 0; lines[i] != NULL; i++)
    {
      reader->line = i + 1;
      if (*g_strstrip (lines[i]) == '\0' || lines[i][0] == '#')
        continue;
      if (!parse_row (reader, lines[i], error))
        return false;
    }
  if (reader->rows->len != reader->n_ranks)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s: %u rows of slots, but pp=%u ranks", reader->file, reader->rows->len, reader->n_ranks);
      return false;
    }
  return true;
}

PodSchedule *
pod_schedule_load (const char *file, uint32_t n_ranks, uint32_t n_microbatches, GError **error)
{
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  Reader reader = { .file = file, .n_ranks = n_ranks, .n_microbatches = n_microbatches, .rows = rows };
  g_autoptr (PodSchedule) schedule = NULL;
  uint32_t n_chunks;
  bool is_v;

  if (!read_rows (&reader, error) || !recognise (&reader, &n_chunks, &is_v, error))
    return NULL;
  schedule = pod_schedule_alloc (POD_SCHEDULE_FILE, n_ranks, n_chunks, n_microbatches);
  schedule->is_v = is_v && n_chunks == 2;
  if (!place (&reader, schedule, error))
    return NULL;
  if (!pod_schedule_check (schedule, error))
    {
      g_prefix_error (error, "%s: ", file);
      return NULL;
    }
  return g_steal_pointer (&schedule);
}
