#include "base/table.h"

#include <string.h>

typedef struct
{
  char *title;
  bool is_right;
} Column;

struct PodTable
{
  GArray *columns; /* (element-type Column) */
  GPtrArray *rows; /* (element-type GStrv) */
};

static void
column_clear (void *data)
{
  Column *column = data;

  g_free (column->title);
}

static void
free_row (void *row)
{
  g_strfreev (row);
}

static void
add_title (PodTable *table, const char *title)
{
  const bool is_right = *title == '>';
  const Column column = { .title = g_utf8_make_valid (title + is_right, -1), .is_right = is_right };

  g_array_append_val (table->columns, column);
}

PodTable *
pod_table_new (const char *const *columns)
{
  g_return_val_if_fail (columns != NULL && columns[0] != NULL, NULL);

  PodTable *table = g_new0 (PodTable, 1);
  table->columns = g_array_new (FALSE, TRUE, sizeof (Column));
  g_array_set_clear_func (table->columns, column_clear);
  table->rows = g_ptr_array_new_with_free_func (free_row);
  for (; *columns != NULL; columns++)
    add_title (table, *columns);
  return table;
}

void
pod_table_add_column (PodTable *table, const char *title, const GPtrArray *cells)
{
  g_return_if_fail (table != NULL && title != NULL && cells != NULL);
  g_return_if_fail (cells->len == table->rows->len);

  const guint n_columns = table->columns->len;

  add_title (table, title);
  for (guint row = 0; row < table->rows->len; row++)
    {
      char **grown = g_renew (char *, g_ptr_array_index (table->rows, row), n_columns + 2);

      grown[n_columns] = g_utf8_make_valid (g_ptr_array_index (cells, row), -1);
      grown[n_columns + 1] = NULL;
      g_ptr_array_index (table->rows, row) = grown;
    }
}

void
pod_table_free (PodTable *table)
{
  if (table == NULL)
    return;
  g_ptr_array_unref (table->rows);
  g_array_unref (table->columns);
  g_free (table);
}

void
pod_table_add_row (PodTable *table, const char *const *cells)
{
  g_return_if_fail (table != NULL && cells != NULL);

  guint n_columns = table->columns->len;
  char **row = g_new0 (char *, n_columns + 1);
  for (guint i = 0; i < n_columns; i++)
    {
      g_assert (cells[i] != NULL);
      row[i] = g_utf8_make_valid (cells[i], -1);
    }
  g_ptr_array_add (table->rows, row);
}

/* The cell of @row in column @i; the titles are row -1. */
static const char *
cell_at (const PodTable *table, int row, guint i)
{
  if (row < 0)
    return g_array_index (table->columns, Column, i).title;
  char **cells = g_ptr_array_index (table->rows, (guint) row);
  return cells[i];
}

static size_t
width_of (const char *text)
{
  return (size_t) g_utf8_strlen (text, -1);
}

/* Line breaks and tabs would tear a row apart. */
static void
append_on_line (GString *out, const char *text)
{
  size_t start = out->len;

  g_string_append (out, text);
  for (size_t i = start; i < out->len; i++)
    if (g_ascii_iscntrl (out->str[i]))
      out->str[i] = ' ';
}

static void
append_blanks (GString *out, size_t n_blanks)
{
  for (size_t i = 0; i < n_blanks; i++)
    g_string_append_c (out, ' ');
}

static void
append_aligned_row (GString *out, const PodTable *table, int row, const size_t *widths)
{
  for (guint i = 0; i < table->columns->len; i++)
    {
      const char *cell = cell_at (table, row, i);
      size_t n_padding = widths[i] - width_of (cell);
      bool is_right = g_array_index (table->columns, Column, i).is_right;
      append_blanks (out, (i > 0 ? 2 : 0) + (is_right ? n_padding : 0));
      append_on_line (out, cell);
      append_blanks (out, is_right ? 0 : n_padding);
    }
  while (out->len > 0 && out->str[out->len - 1] == ' ')
    g_string_truncate (out, out->len - 1);
  g_string_append_c (out, '\n');
}

char *
pod_table_to_text (const PodTable *table)
{
  g_return_val_if_fail (table != NULL, NULL);

  g_autofree size_t *widths = g_new0 (size_t, table->columns->len);
  int n_rows = (int) table->rows->len;
  for (int row = -1; row < n_rows; row++)
    for (guint i = 0; i < table->columns->len; i++)
      widths[i] = MAX (widths[i], width_of (cell_at (table, row, i)));
  GString *out = g_string_new (NULL);
  for (int row = -1; row < n_rows; row++)
    append_aligned_row (out, table, row, widths);
  return g_string_free (out, FALSE);
}

/* RFC 4180: quotes around a cell with a comma, quote or line break; quotes inside are doubled. */
static void
append_csv_cell (GString *out, const char *cell)
{
  if (strpbrk (cell, ",\"\r\n") == NULL)
    {
      g_string_append (out, cell);
      return;
    }
  g_string_append_c (out, '"');
  for (; *cell != '\0'; cell++)
    {
      if (*cell == '"')
        g_string_append_c (out, '"');
      g_string_append_c (out, *cell);
    }
  g_string_append_c (out, '"');
}

/* gnuplot splits at blanks, except between double quotes, and knows no escape for a quote. */
static void
append_gnuplot_cell (GString *out, const char *cell)
{
  bool is_quoted = *cell == '\0' || strpbrk (cell, " \t\r\n\"#") != NULL;
  size_t start = out->len;

  if (is_quoted)
    g_string_append_c (out, '"');
  append_on_line (out, cell);
  for (size_t i = start + is_quoted; i < out->len; i++)
    if (out->str[i] == '"')
      out->str[i] = '\'';
  if (is_quoted)
    g_string_append_c (out, '"');
}

static void
append_separated_row (GString *out, const PodTable *table, int row, char separator)
{
  if (row < 0 && separator == ' ')
    g_string_append (out, "# ");
  for (guint i = 0; i < table->columns->len; i++)
    {
      const char *cell = cell_at (table, row, i);
      if (i > 0)
        g_string_append_c (out, separator);
      if (separator == ',')
        append_csv_cell (out, cell);
      else if (separator == ' ')
        append_gnuplot_cell (out, cell);
      else
        append_on_line (out, cell);
    }
  g_string_append_c (out, '\n');
}

char *
pod_table_to_separated (const PodTable *table, char separator)
{
  g_return_val_if_fail (table != NULL, NULL);
  g_return_val_if_fail (separator == '\t' || separator == ',' || separator == ' ', NULL);

  GString *out = g_string_new (NULL);
  for (int row = -1; row < (int) table->rows->len; row++)
    append_separated_row (out, table, row, separator);
  return g_string_free (out, FALSE);
}

unsigned
pod_table_n_rows (const PodTable *table)
{
  return table->rows->len;
}

unsigned
pod_table_n_columns (const PodTable *table)
{
  return table->columns->len;
}

bool
pod_table_is_right (const PodTable *table, unsigned column)
{
  g_return_val_if_fail (column < table->columns->len, false);

  return g_array_index (table->columns, Column, column).is_right;
}

const char *
pod_table_cell (const PodTable *table, int row, unsigned column)
{
  g_return_val_if_fail (row >= -1 && row < (int) table->rows->len, NULL);
  g_return_val_if_fail (column < table->columns->len, NULL);

  return cell_at (table, row, column);
}
