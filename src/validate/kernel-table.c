#include "validate/kernel-table.h"

#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/units.h"

enum
{
  LARGEST_NUMBER = 1 << 24,
  MAX_COLUMNS = 64,
};

/* The columns of each kind of table, in the order of PodKernelSample.numbers, and which of them are
 * the shape, by which rows fall into folds. */
static const struct
{
  const char *columns[POD_SAMPLE_MAX_NUMBERS + 1];
  unsigned shape_mask;
} formats[] = {
  [POD_KERNEL_TABLE_GEMM] = { { "m", "n", "k" }, 1u << POD_GEMM_N | 1u << POD_GEMM_K },
  [POD_KERNEL_TABLE_ATTENTION]
  = { { "batch", "q_len", "past_len", "heads", "kv_heads", "head_dim" },
      1u << POD_ATTENTION_HEADS | 1u << POD_ATTENTION_KV_HEADS | 1u << POD_ATTENTION_HEAD_DIM },
  [POD_KERNEL_TABLE_MOE]
  = { { "tokens", "hidden", "moe_ffn", "topk", "experts", "moe_tp", "moe_ep" },
      1u << POD_MOE_HIDDEN | 1u << POD_MOE_FFN | 1u << POD_MOE_EXPERTS },
};

static const struct
{
  const char *name;
  PodDtype dtype;
} dtypes[] = {
  { "bfloat16", POD_DTYPE_BF16 }, { "bf16", POD_DTYPE_BF16 }, { "float16", POD_DTYPE_FP16 },
  { "fp16", POD_DTYPE_FP16 },     { "fp8", POD_DTYPE_FP8 },
};

static const char *const kind_names[] = {
  [POD_SAMPLE_GEMM] = "gemm",
  [POD_SAMPLE_PREFILL] = "prefill",
  [POD_SAMPLE_DECODE] = "decode",
  [POD_SAMPLE_MOE] = "moe",
  [POD_SAMPLE_MOE_SKEWED] = "moe_skewed",
};

typedef struct
{
  int numbers[POD_SAMPLE_MAX_NUMBERS];
  unsigned n_numbers;
  int dtype;
  int distribution;
  int time_us;
  guint n_columns;
} Columns;

const char *
pod_sample_kind_name (PodSampleKind kind)
{
  g_return_val_if_fail ((unsigned) kind < POD_N_SAMPLE_KINDS, NULL);
  return kind_names[kind];
}

static PodKernelTableKind
table_kind (PodSampleKind kind)
{
  switch (kind)
    {
    case POD_SAMPLE_GEMM:
      return POD_KERNEL_TABLE_GEMM;
    case POD_SAMPLE_PREFILL:
    case POD_SAMPLE_DECODE:
      return POD_KERNEL_TABLE_ATTENTION;
    case POD_SAMPLE_MOE:
    case POD_SAMPLE_MOE_SKEWED:
    default:
      return POD_KERNEL_TABLE_MOE;
    }
}

char *
pod_kernel_sample_to_text (const PodKernelSample *sample)
{
  const char *const *columns = formats[table_kind (sample->kind)].columns;
  GString *text = g_string_new (NULL);

  for (unsigned i = 0; columns[i] != NULL; i++)
    g_string_append_printf (text, "%s%s=%" G_GUINT64_FORMAT, i > 0 ? " " : "", columns[i],
                            sample->numbers[i]);
  if (sample->power > 1.0)
    g_string_append_printf (text, " power=%g", sample->power);
  return g_string_free (text, FALSE);
}

void
pod_kernel_table_free (PodKernelTable *table)
{
  if (table == NULL)
    return;
  g_free (table->file);
  g_free (table->source);
  g_array_unref (table->samples);
  g_ptr_array_unref (table->skipped);
  g_free (table);
}

/* -- columns ----------------------------------------------------------------------------------- */

static int
find_column (char *const *titles, const char *name)
{
  for (int i = 0; titles[i] != NULL; i++)
    if (strcmp (titles[i], name) == 0)
      return i;
  return -1;
}

static bool
find_numbers (char *const *titles, PodKernelTableKind kind, Columns *columns)
{
  const char *const *names = formats[kind].columns;

  for (columns->n_numbers = 0; names[columns->n_numbers] != NULL; columns->n_numbers++)
    {
      int column = find_column (titles, names[columns->n_numbers]);

      if (column < 0)
        return false;
      columns->numbers[columns->n_numbers] = column;
    }
  return true;
}

static bool
read_titles (PodKernelTable *table, char *const *titles, Columns *columns)
{
  columns->n_columns = g_strv_length ((char **) titles);
  columns->dtype = find_column (titles, "dtype");
  columns->time_us = find_column (titles, "latency_us");
  columns->distribution = find_column (titles, "distribution");
  if (columns->dtype < 0 || columns->time_us < 0)
    return false;
  for (unsigned i = 0; i < G_N_ELEMENTS (formats); i++)
    if (find_numbers (titles, (PodKernelTableKind) i, columns))
      {
        table->kind = (PodKernelTableKind) i;
        return true;
      }
  return false;
}

/* -- rows -------------------------------------------------------------------------------------- */

/* FNV-1a, then the finaliser of MurmurHash3 so that the low digits depend on all of it. */
static unsigned
hash_fold (const PodKernelSample *sample, unsigned shape_mask)
{
  uint32_t hash = 2166136261u;

  for (unsigned i = 0; i < POD_SAMPLE_MAX_NUMBERS; i++)
    if (shape_mask >> i & 1)
      for (unsigned shift = 0; shift < 32; shift += 8)
        hash = (hash ^ (uint32_t) (sample->numbers[i] >> shift & 0xff)) * 16777619u;
  hash = (hash ^ hash >> 16) * 2246822507u;
  hash = (hash ^ hash >> 13) * 3266489909u;
  return (hash ^ hash >> 16) % POD_SAMPLE_N_FOLDS;
}

static bool
read_numbers (const Columns *columns, char *const *cells, PodKernelSample *sample, GError **error)
{
  double time_us = 0.0;

  for (unsigned i = 0; i < columns->n_numbers; i++)
    {
      if (!pod_parse_whole (cells[columns->numbers[i]], POD_UNIT_COUNT, &sample->numbers[i], error))
        return false;
      if (sample->numbers[i] > LARGEST_NUMBER)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "sizes are at most %d, got %s",
                       LARGEST_NUMBER, cells[columns->numbers[i]]);
          return false;
        }
    }
  if (!pod_parse_quantity (cells[columns->time_us], POD_UNIT_COUNT, &time_us, error))
    return false;
  sample->time_s = time_us * 1e-6;
  if (time_us > 0.0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "a time is above 0, got %s us",
               cells[columns->time_us]);
  return false;
}

/* Sizes that cannot be, as text; NULL when all is well. */
static const char *
wrong_sizes (PodKernelTableKind kind, const uint64_t *numbers)
{
  for (unsigned i = 0; formats[kind].columns[i] != NULL; i++)
    if (numbers[i] == 0 && !(kind == POD_KERNEL_TABLE_ATTENTION && i == POD_ATTENTION_PAST_LEN))
      return "a size of 0";
  if (kind == POD_KERNEL_TABLE_ATTENTION
      && numbers[POD_ATTENTION_HEADS] % numbers[POD_ATTENTION_KV_HEADS] != 0)
    return "heads that are no multiple of kv_heads";
  if (kind == POD_KERNEL_TABLE_MOE
      && (numbers[POD_MOE_EXPERTS] % numbers[POD_MOE_EP] != 0
          || numbers[POD_MOE_FFN] % numbers[POD_MOE_TP] != 0))
    return "experts or widths that do not divide";
  return NULL;
}

static bool
set_distribution (const char *text, PodKernelSample *sample)
{
  const char prefix[] = "power_law_";
  char *end = NULL;

  sample->power = 1.0;
  if (text == NULL || strcmp (text, "balanced") == 0)
    return true;
  if (!g_str_has_prefix (text, prefix))
    return false;
  sample->kind = POD_SAMPLE_MOE_SKEWED;
  sample->power = g_ascii_strtod (text + strlen (prefix), &end);
  return *end == '\0' && sample->power > 1.0 && sample->power < 100.0;
}

static PodSampleKind
sample_kind (PodKernelTableKind kind, const uint64_t *numbers)
{
  if (kind == POD_KERNEL_TABLE_ATTENTION)
    return numbers[POD_ATTENTION_PAST_LEN] > 0 ? POD_SAMPLE_DECODE : POD_SAMPLE_PREFILL;
  return kind == POD_KERNEL_TABLE_MOE ? POD_SAMPLE_MOE : POD_SAMPLE_GEMM;
}

/* Why the row is not judged, NULL when it is. */
static const char *
fill_sample (const PodKernelTable *table, const Columns *columns, char *const *cells,
             PodKernelSample *sample)
{
  const char *wrong = wrong_sizes (table->kind, sample->numbers);
  bool is_known = false;

  if (wrong != NULL)
    return wrong;
  for (size_t i = 0; i < G_N_ELEMENTS (dtypes) && !is_known; i++)
    if (strcmp (cells[columns->dtype], dtypes[i].name) == 0)
      {
        sample->dtype = dtypes[i].dtype;
        is_known = true;
      }
  if (!is_known)
    return "an unknown dtype";
  sample->kind = sample_kind (table->kind, sample->numbers);
  if (table->kind == POD_KERNEL_TABLE_MOE
      && !set_distribution (columns->distribution >= 0 ? cells[columns->distribution] : NULL,
                            sample))
    return "an unknown distribution";
  sample->fold = hash_fold (sample, formats[table->kind].shape_mask);
  return NULL;
}

static bool
read_row (PodKernelTable *table, const Columns *columns, char *const *cells, unsigned line,
          GError **error)
{
  PodKernelSample sample = { .line = line };
  const char *wrong;

  if (!read_numbers (columns, cells, &sample, error))
    {
      g_prefix_error (error, "%s:%u: ", table->file, line);
      return false;
    }
  wrong = fill_sample (table, columns, cells, &sample);
  if (wrong != NULL)
    g_ptr_array_add (table->skipped, g_strdup_printf ("line %u: %s", line, wrong));
  else
    g_array_append_val (table->samples, sample);
  return true;
}

/* Cuts @line at its tabs, in place. Returns: how many cells; at most MAX_COLUMNS are set, and a
 * NULL after them. */
static guint
split_cells (char *line, char *cells[MAX_COLUMNS + 1])
{
  guint n = 0;

  for (char *at = line; at != NULL; n++)
    {
      char *tab = strchr (at, '\t');

      if (tab != NULL)
        *tab = '\0';
      if (n < MAX_COLUMNS)
        cells[n] = at;
      at = tab != NULL ? tab + 1 : NULL;
    }
  cells[MIN (n, MAX_COLUMNS)] = NULL;
  return n;
}

static bool
read_line (PodKernelTable *table, char *text, unsigned line, Columns *columns, GError **error)
{
  const char source[] = "# source: ";
  char *cells[MAX_COLUMNS + 1];
  guint n_cells;

  g_strchomp (text);
  if (table->source == NULL && g_str_has_prefix (text, source))
    table->source = g_strdup (text + strlen (source));
  if (*text == '\0' || *text == '#')
    return true;
  n_cells = split_cells (text, cells);
  if (columns->n_columns == 0 && n_cells <= MAX_COLUMNS && read_titles (table, cells, columns))
    return true;
  if (columns->n_columns == 0)
    g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                 "%s:%u: expected the columns dtype, latency_us and m n k, or batch q_len past_len "
                 "heads kv_heads head_dim, or tokens hidden moe_ffn topk experts moe_tp moe_ep",
                 table->file, line);
  else if (n_cells != columns->n_columns)
    g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: %u cells, expected %u", table->file,
                 line, n_cells, columns->n_columns);
  else
    return read_row (table, columns, cells, line, error);
  return false;
}

/* Returns: (transfer full) (nullable) */
static char *
read_text (const char *file, GError **error)
{
  size_t n_bytes = 0, n_inflated = 0;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);

  if (text != NULL && pod_gzip_is_magic (text, n_bytes))
    return pod_gzip_inflate (file, text, n_bytes, POD_FILE_LIMIT_BYTES, &n_inflated, error);
  return g_steal_pointer (&text);
}

PodKernelTable *
pod_kernel_table_load (const char *file, GError **error)
{
  g_autoptr (PodKernelTable) table = NULL;
  g_autofree char *text = read_text (file, error);
  Columns columns = { 0 };
  unsigned line = 0;

  if (text == NULL)
    return NULL;
  table = g_new0 (PodKernelTable, 1);
  table->file = g_strdup (file);
  table->samples = g_array_new (FALSE, TRUE, sizeof (PodKernelSample));
  table->skipped = g_ptr_array_new_with_free_func (g_free);
  for (char *at = text; at != NULL;)
    {
      char *end = strchr (at, '\n');

      if (end != NULL)
        *end = '\0';
      if (!read_line (table, at, ++line, &columns, error))
        return NULL;
      at = end != NULL ? end + 1 : NULL;
    }
  if (columns.n_columns > 0)
    return g_steal_pointer (&table);
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:1: the table is empty", file);
  return NULL;
}
