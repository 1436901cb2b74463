#include "validate/training-table.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/units.h"

typedef enum
{
  CELL_TEXT,
  CELL_WHOLE,   /* words are as good as NA */
  CELL_NUMBER,
  CELL_PERCENT, /* kept as a ratio */
} CellKind;

/* A column of the table and where it goes. */
typedef struct
{
  const char *name;
  CellKind kind;
  size_t offset; /* in PodTrainingRow */
} Column;

#define AT(field) offsetof (PodTrainingRow, field)

static const Column columns[] = {
  { "id", CELL_TEXT, AT (id) },
  { "why_not", CELL_TEXT, AT (why_not) },
  { "zero_stage", CELL_TEXT, AT (zero_stage) },
  { "recompute_kind", CELL_TEXT, AT (recompute_kind) },
  { "dtype_kind", CELL_TEXT, AT (dtype_kind) },
  { "spread_pct", CELL_PERCENT, AT (spread_ratio) },
  { "source_key", CELL_TEXT, AT (source) },
  { "hardware", CELL_TEXT, AT (hardware) },
  { "year", CELL_WHOLE, AT (year) },
  { "n_chips", CELL_WHOLE, AT (n_chips) },
  { "topology", CELL_TEXT, AT (topology) },
  { "framework", CELL_TEXT, AT (framework) },
  { "model", CELL_TEXT, AT (model) },
  { "layers", CELL_WHOLE, AT (layers) },
  { "hidden", CELL_WHOLE, AT (hidden) },
  { "heads", CELL_WHOLE, AT (heads) },
  { "kv_heads", CELL_WHOLE, AT (kv_heads) },
  { "head_dim", CELL_TEXT, AT (head_dim) },
  { "ffn", CELL_WHOLE, AT (ffn) },
  { "gated", CELL_TEXT, AT (gated) },
  { "vocab", CELL_TEXT, AT (vocab) },
  { "n_experts", CELL_WHOLE, AT (n_experts) },
  { "seq_len", CELL_WHOLE, AT (seq_len) },
  { "global_batch", CELL_WHOLE, AT (global_batch) },
  { "micro_batch", CELL_WHOLE, AT (micro_batch) },
  { "tp", CELL_WHOLE, AT (tp) },
  { "pp", CELL_WHOLE, AT (pp) },
  { "vpp", CELL_TEXT, AT (vpp) },
  { "dp", CELL_WHOLE, AT (dp) },
  { "zero_fsdp", CELL_TEXT, AT (fsdp) },
  { "cp", CELL_WHOLE, AT (cp) },
  { "ep", CELL_WHOLE, AT (ep) },
  { "recompute", CELL_TEXT, AT (recompute) },
  { "dtype", CELL_TEXT, AT (dtype) },
  { "step_time_s", CELL_NUMBER, AT (step_time_s) },
  { "tflops_per_chip", CELL_NUMBER, AT (tflops_per_chip) },
  { "mfu_pct", CELL_PERCENT, AT (mfu_ratio) },
  { "hfu_pct", CELL_PERCENT, AT (hfu_ratio) },
  { "peak_tflops_ref", CELL_NUMBER, AT (peak_tflops) },
  { "flop_convention", CELL_TEXT, AT (flop_convention) },
  { "mem_gib_per_chip", CELL_NUMBER, AT (memory_gib) },
  { "note", CELL_TEXT, AT (note) },
};

static void
row_free (gpointer data)
{
  PodTrainingRow *row = data;

  g_strfreev (row->cells);
  g_free (row);
}

void
pod_training_table_free (PodTrainingTable *table)
{
  if (table == NULL)
    return;
  g_free (table->file);
  g_ptr_array_unref (table->rows);
  g_free (table);
}

static bool
is_absent (const char *cell)
{
  return cell[0] == '\0' || strcmp (cell, "NA") == 0;
}

/* "NA", or words where a number is wanted, leave the field at 0: its row lacks it. */
static void
read_cell (PodTrainingRow *row, const Column *column, const char *cell)
{
  void *at = (char *) row + column->offset;
  double number = 0;

  if (column->kind == CELL_TEXT)
    *(const char **) at = is_absent (cell) ? NULL : cell;
  else if (column->kind == CELL_WHOLE)
    {
      if (!pod_parse_whole (cell, POD_UNIT_COUNT, at, NULL))
        *(uint64_t *) at = 0;
    }
  else if (pod_parse_quantity (cell, POD_UNIT_COUNT, &number, NULL))
    *(double *) at = column->kind == CELL_PERCENT ? number / 100 : number;
}

static int
find_title (char *const *titles, const char *name)
{
  for (int i = 0; titles[i] != NULL; i++)
    if (strcmp (titles[i], name) == 0)
      return i;
  return -1;
}

/* Positions of the columns, that of "judged" last. */
static bool
read_titles (const PodTrainingTable *table, char *const *titles, unsigned line, int *places,
             GError **error)
{
  for (size_t i = 0; i <= G_N_ELEMENTS (columns); i++)
    {
      const char *name = i < G_N_ELEMENTS (columns) ? columns[i].name : "judged";

      places[i] = find_title (titles, name);
      if (places[i] >= 0)
        continue;
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: the column %s is missing",
                   table->file, line, name);
      return false;
    }
  return true;
}

static void
add_row (PodTrainingTable *table, char **cells, const int *places, unsigned line)
{
  PodTrainingRow *row = g_new0 (PodTrainingRow, 1);

  row->cells = cells;
  row->line = line;
  row->is_judged = strcmp (cells[places[G_N_ELEMENTS (columns)]], "y") == 0;
  for (size_t i = 0; i < G_N_ELEMENTS (columns); i++)
    read_cell (row, &columns[i], cells[places[i]]);
  g_ptr_array_add (table->rows, row);
}

static bool
read_lines (PodTrainingTable *table, char *const *lines, GError **error)
{
  int places[G_N_ELEMENTS (columns) + 1];
  guint n_columns = 0;

  for (unsigned i = 0; lines[i] != NULL; i++)
    {
      g_auto (GStrv) cells = NULL;

      g_strdelimit (lines[i], "\r", '\0');
      if (lines[i][0] == '\0' || lines[i][0] == '#')
        continue;
      cells = g_strsplit (lines[i], "\t", -1);
      if (n_columns == 0)
        {
          n_columns = g_strv_length (cells);
          if (!read_titles (table, cells, i + 1, places, error))
            return false;
          continue;
        }
      if (g_strv_length (cells) != n_columns)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: %u cells, expected %u",
                       table->file, i + 1, g_strv_length (cells), n_columns);
          return false;
        }
      add_row (table, g_steal_pointer (&cells), places, i + 1);
    }
  if (n_columns > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:1: the table is empty", table->file);
  return false;
}

PodTrainingTable *
pod_training_table_load (const char *file, GError **error)
{
  g_autoptr (PodTrainingTable) table = NULL;
  size_t n_bytes;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);
  g_auto (GStrv) lines = NULL;

  if (text == NULL)
    return NULL;
  table = g_new0 (PodTrainingTable, 1);
  table->file = g_strdup (file);
  table->rows = g_ptr_array_new_with_free_func (row_free);
  lines = g_strsplit (text, "\n", -1);
  if (!read_lines (table, lines, error))
    return NULL;
  return g_steal_pointer (&table);
}
