#include "validate/collective-table.h"

#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/units.h"

/* XLA's tables below 4 MiB are noise around the launch time. */
#define XLA_STEADY_BYTES (UINT64_C (4) << 20)

/* XLA's names of devices. */
static const struct
{
  const char *chip;
  const char *device;
} xla_devices[] = {
  { "h100", "sm_90" },   { "b200", "sm_100_B200" }, { "gb200", "sm_100_GB200" },
  { "gb300", "sm_103" }, { "mi355x", "gfx950" },
};

static const struct
{
  const char *name;
  PodCollectiveKind kind;
} operations[] = {
  { "all_gather", POD_ALL_GATHER },
  { "all-gather", POD_ALL_GATHER },
  { "reduce_scatter", POD_REDUCE_SCATTER },
  { "reduce-scatter", POD_REDUCE_SCATTER },
  { "all_reduce", POD_ALL_REDUCE },
  { "all-reduce", POD_ALL_REDUCE },
  { "alltoall", POD_ALL_TO_ALL },
  { "all_to_all", POD_ALL_TO_ALL },
  { "all-to-all", POD_ALL_TO_ALL },
  { "collective-permute", POD_PERMUTE },
  { "collective_permute", POD_PERMUTE },
  { "broadcast", POD_BROADCAST },
  { "reduce", POD_REDUCE },
  { "sendrecv", POD_SEND },
};

static const struct
{
  const char *name;
  PodDtype dtype;
} dtypes[] = {
  { "half", POD_DTYPE_FP16 },     { "float16", POD_DTYPE_FP16 }, { "F16", POD_DTYPE_FP16 },
  { "bfloat16", POD_DTYPE_BF16 }, { "BF16", POD_DTYPE_BF16 },    { "bf16", POD_DTYPE_BF16 },
  { "float", POD_DTYPE_FP32 },    { "F32", POD_DTYPE_FP32 },     { "fp32", POD_DTYPE_FP32 },
  { "int8", POD_DTYPE_INT8 },     { "S8", POD_DTYPE_INT8 },
};

/* Where the columns of a table stand. */
typedef struct
{
  int op;
  int dtype;
  int ranks;
  int bytes;
  int time_us;
  int device;
  int pairs;
} Columns;

void
pod_collective_table_free (PodCollectiveTable *table)
{
  if (table == NULL)
    return;
  g_free (table->file);
  g_free (table->source);
  g_free (table->date);
  g_array_unref (table->samples);
  g_ptr_array_unref (table->skipped);
  g_free (table);
}

static void
split_halves (PodCollectiveTable *table)
{
  bool has_sizes = false;
  uint64_t first
      = table->samples->len > 0 ? g_array_index (table->samples, PodCollectiveSample, 0).bytes : 0;
  uint64_t second = first;

  for (guint i = 1; i < table->samples->len; i++)
    {
      uint64_t bytes = g_array_index (table->samples, PodCollectiveSample, i).bytes;

      has_sizes |= bytes != first && bytes != second && second != first;
      if (second == first)
        second = bytes;
    }
  for (guint i = 0; i < table->samples->len; i++)
    {
      PodCollectiveSample *sample = &g_array_index (table->samples, PodCollectiveSample, i);
      unsigned log2 = 0;

      while (log2 < 63 && sample->bytes >> (log2 + 1) != 0)
        log2++;
      sample->is_fitted = (has_sizes ? log2 : sample->n_ranks) % 2 == 0;
    }
}

static int
find_column (char *const *titles, const char *name)
{
  for (int i = 0; titles[i] != NULL; i++)
    if (strcmp (titles[i], name) == 0)
      return i;
  return -1;
}

static bool
read_titles (char *const *titles, Columns *columns)
{
  *columns = (Columns){
    .op = find_column (titles, "op"),
    .dtype = find_column (titles, "dtype"),
    .ranks = find_column (titles, "gpus"),
    .bytes = find_column (titles, "bytes"),
    .time_us = find_column (titles, "latency_us"),
    .device = -1,
    .pairs = -1,
  };
  if (columns->ranks < 0)
    {
      columns->ranks = find_column (titles, "group_size");
      columns->bytes = find_column (titles, "tensor_bytes");
      columns->time_us = find_column (titles, "runtime_us");
      columns->device = find_column (titles, "device");
      columns->pairs = find_column (titles, "pairs");
      if (columns->device < 0 || columns->pairs < 0)
        return false;
    }
  return columns->op >= 0 && columns->dtype >= 0 && columns->ranks >= 0 && columns->bytes >= 0
         && columns->time_us >= 0;
}

static bool
find_operation (const char *text, PodCollectiveKind *out)
{
  for (size_t i = 0; i < G_N_ELEMENTS (operations); i++)
    if (strcmp (operations[i].name, text) == 0)
      {
        *out = operations[i].kind;
        return true;
      }
  return false;
}

static bool
find_dtype (const char *text, PodDtype *out)
{
  for (size_t i = 0; i < G_N_ELEMENTS (dtypes); i++)
    if (strcmp (dtypes[i].name, text) == 0)
      {
        *out = dtypes[i].dtype;
        return true;
      }
  return false;
}

static bool
read_numbers (char *const *cells, const Columns *columns, PodCollectiveSample *sample,
              GError **error)
{
  uint64_t ranks = 0;
  double time_us = 0;
  int column = columns->ranks;

  if (columns->pairs >= 0 && sample->kind == POD_PERMUTE)
    column = columns->pairs;
  if (!pod_parse_whole (cells[column], POD_UNIT_COUNT, &ranks, error)
      || !pod_parse_whole (cells[columns->bytes], POD_UNIT_BYTES, &sample->bytes, error)
      || !pod_parse_quantity (cells[columns->time_us], POD_UNIT_COUNT, &time_us, error))
    return false;
  if (ranks < 2 || ranks > 1 << 20 || !(time_us > 0))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                   "needs 2 ranks or more and a time above 0, got %s and %s us", cells[column],
                   cells[columns->time_us]);
      return false;
    }
  sample->n_ranks = (uint32_t) ranks;
  sample->time_s = time_us * 1e-6;
  return true;
}

static const char *
xla_device (const char *chip)
{
  for (size_t i = 0; i < G_N_ELEMENTS (xla_devices); i++)
    if (strcmp (xla_devices[i].chip, chip) == 0)
      return xla_devices[i].device;
  return NULL;
}

static bool
read_row (PodCollectiveTable *table, char *const *cells, const Columns *columns, const char *chip,
          unsigned line, GError **error)
{
  PodCollectiveSample sample = { .line = line, .is_judged = true };

  if (columns->device >= 0 && g_strcmp0 (cells[columns->device], xla_device (chip)) != 0)
    return true;
  if (!find_operation (cells[columns->op], &sample.kind)
      || !find_dtype (cells[columns->dtype], &sample.dtype))
    {
      g_ptr_array_add (table->skipped,
                       g_strdup_printf ("line %u: operation %s of %s is unknown", line,
                                        cells[columns->op], cells[columns->dtype]));
      return true;
    }
  if (!read_numbers (cells, columns, &sample, error))
    {
      g_prefix_error (error, "%s:%u: ", table->file, line);
      return false;
    }
  if (columns->device >= 0)
    {
      sample.is_small = sample.bytes < XLA_STEADY_BYTES;
      sample.is_judged = sample.kind != POD_PERMUTE;
    }
  g_array_append_val (table->samples, sample);
  return true;
}

static void
set_text (char **text, const char *to)
{
  g_free (*text);
  *text = g_strdup (to);
}

static bool
read_lines (PodCollectiveTable *table, char *const *lines, const char *chip, GError **error)
{
  Columns columns = { 0 };
  guint n_columns = 0;

  for (unsigned i = 0; lines[i] != NULL; i++)
    {
      g_auto (GStrv) cells = NULL;

      g_strchomp (lines[i]);
      if (g_str_has_prefix (lines[i], "# source: "))
        set_text (&table->source, lines[i] + strlen ("# source: "));
      if (g_str_has_prefix (lines[i], "# date: "))
        set_text (&table->date, lines[i] + strlen ("# date: "));
      if (lines[i][0] == '\0' || lines[i][0] == '#')
        continue;
      cells = g_strsplit (lines[i], "\t", -1);
      if (n_columns == 0)
        {
          n_columns = g_strv_length (cells);
          if (read_titles (cells, &columns))
            continue;
          g_set_error (
              error, POD_ERROR, POD_ERROR_PARSE,
              "%s:%u: expected the columns op dtype gpus bytes latency_us, or device op "
              "dtype group_size groups_at_once pairs tensor_bytes throughput_Bps runtime_us",
              table->file, i + 1);
          return false;
        }
      if (g_strv_length (cells) != n_columns)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: %u cells, expected %u",
                       table->file, i + 1, g_strv_length (cells), n_columns);
          return false;
        }
      if (!read_row (table, cells, &columns, chip, i + 1, error))
        return false;
    }
  if (n_columns > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:1: the table is empty", table->file);
  return false;
}

PodCollectiveTable *
pod_collective_table_load (const char *file, const char *chip, GError **error)
{
  g_autoptr (PodCollectiveTable) table = NULL;
  size_t n_bytes;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);
  g_auto (GStrv) lines = NULL;

  if (text == NULL)
    return NULL;
  table = g_new0 (PodCollectiveTable, 1);
  table->file = g_strdup (file);
  table->samples = g_array_new (FALSE, TRUE, sizeof (PodCollectiveSample));
  table->skipped = g_ptr_array_new_with_free_func (g_free);
  lines = g_strsplit (text, "\n", -1);
  if (!read_lines (table, lines, chip, error))
    return NULL;
  split_halves (table);
  return g_steal_pointer (&table);
}
