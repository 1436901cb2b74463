#include "validate/calibrate-kernels.h"

#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/output.h"

enum
{
  MAX_GRIDS = 2, /* of one stage */
};

/* What is fitted to what, in this order: a later stage builds on the surfaces of the ones before.
 * Nodes are dense where silicon changes its mind (which tile, how many splits) and coarse
 * elsewhere; decode kernels change above groups of 32 queries. On one chip they are at most 2,000
 * for each dtype, over all stages. */
static const struct
{
  const char *name;
  unsigned kinds; /* of samples, a bit each */
  PodDtype dtype;
  unsigned n_grids;
  PodSurfaceGrid grids[MAX_GRIDS];
} stages[] = {
  { "matmuls",
    1u << POD_SAMPLE_GEMM,
    POD_DTYPE_BF16,
    1,
    { { POD_SURFACE_MATMUL_BF16,
        { "1 4 16 32 64 128 256 512 1024 2048 4096 8192 32768",
          "32 128 512 1024 2048 4096 8192 16384 65536",
          "32 128 512 1024 2048 4096 8192 16384 65536" } } } },
  { "matmuls",
    1u << POD_SAMPLE_GEMM,
    POD_DTYPE_FP8,
    2,
    { { POD_SURFACE_MATMUL_FP8,
        { "1 4 16 32 64 128 256 512 1024 2048 4096 8192 32768",
          "32 128 512 1024 2048 4096 8192 16384 65536",
          "32 128 512 1024 2048 4096 8192 16384 65536" } },
      { POD_SURFACE_CAST_FP8, { "1 16 128 1024 4096 32768", "32 512 2048 8192 65536" } } } },
  { "prefill",
    1u << POD_SAMPLE_PREFILL,
    POD_DTYPE_BF16,
    1,
    { { POD_SURFACE_PREFILL, { "1 64 512 2048 16384", "1 32 128 1024", "1 8", "64 128 256" } } } },
  { "decode",
    1u << POD_SAMPLE_DECODE,
    POD_DTYPE_BF16,
    1,
    { { POD_SURFACE_DECODE,
        { "1 32 128 256 512 2048 16384", "1 16 128 2048", "1 16 32 33 128", "64 128 256" } } } },
  { "experts' matmuls",
    1u << POD_SAMPLE_MOE,
    POD_DTYPE_BF16,
    1,
    { { POD_SURFACE_GROUPED, { "1 4 16 64 256 1024 8192", "2 8 32 256", "32 128 512 4096" } } } },
  { "experts",
    1u << POD_SAMPLE_MOE | 1u << POD_SAMPLE_MOE_SKEWED,
    POD_DTYPE_BF16,
    1,
    { { POD_SURFACE_EXPERTS,
        { "0.03 0.2 1 8 64 1024", "1 2 8 64 512", "1 8 16 128", "1 1.01" } } } },
};

/* -- the tables -------------------------------------------------------------------------------- */

/* Returns: (transfer full) (nullable) (element-type PodKernelTable) */
static GPtrArray *
load_tables (const PodKernelCalibration *request, GError **error)
{
  g_autoptr (GPtrArray) tables
      = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_kernel_table_free);

  for (unsigned i = 0; i < request->n_tables; i++)
    {
      PodKernelTable *table = pod_kernel_table_load (request->tables[i], error);

      if (table == NULL)
        return NULL;
      g_ptr_array_add (tables, table);
    }
  return g_steal_pointer (&tables);
}

/* The rows of the kinds and width of dtype; *out_source is of the table that has them. Returns:
 * (transfer full) */
static GArray *
pick_samples (const GPtrArray *tables, unsigned kinds, PodDtype dtype, const char **out_source)
{
  GArray *picked = g_array_new (FALSE, FALSE, sizeof (PodKernelSample));

  for (guint t = 0; t < tables->len; t++)
    {
      const PodKernelTable *table = g_ptr_array_index (tables, t);

      for (guint i = 0; i < table->samples->len; i++)
        {
          const PodKernelSample *sample = &g_array_index (table->samples, PodKernelSample, i);

          if ((kinds >> sample->kind & 1) == 0
              || pod_dtype_bytes (sample->dtype) != pod_dtype_bytes (dtype))
            continue;
          *out_source = table->source != NULL ? table->source : table->file;
          g_array_append_val (picked, *sample);
        }
    }
  return picked;
}

/* -- the chip's file --------------------------------------------------------------------------- */

/* Puts the element in place of the one of its name, or at the end. */
static bool
put_element (GString *text, const char *name, const char *element, GError **error)
{
  g_autofree char *opening = g_strconcat ("  <", name, "\n", NULL);
  g_autofree char *closing = g_strconcat ("</", name, ">\n", NULL);
  char *start = strstr (text->str, opening), *end;
  gssize at;

  if (start != NULL && (end = strstr (start, closing)) != NULL)
    {
      at = start - text->str;
      g_string_erase (text, at, end + strlen (closing) - start);
    }
  else if ((start = g_strrstr (text->str, "</chip>")) != NULL)
    at = start - text->str;
  else
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "no </chip> to put %s before", name);
      return false;
    }
  g_string_insert (text, at, element);
  return true;
}

static char *
describe (const PodKernelStage *stage, const char *source)
{
  return g_strdup_printf ("podsim calibrate kernels: %u rows of %s; mean error %.1f %%, held out "
                          "%.1f %%",
                          stage->fit.n_rows, source, stage->fit.fitted.mape * 100,
                          stage->fit.held_out.mape * 100);
}

/* What the chip's file says about where the element comes from. (transfer none) */
static const char *
find_source (const PodChip *chip, const char *name)
{
  for (guint i = 0; i < chip->sources->len; i++)
    {
      const char *line = g_ptr_array_index (chip->sources, i);

      if (g_str_has_prefix (line, name) && g_str_has_prefix (line + strlen (name), ": "))
        return line + strlen (name) + strlen (": ");
    }
  return "not stated";
}

/* A ratio of measured to modelled times holds for a chip of the same make, where times would not:
 * its own rates stand in the closed forms. Surfaces of @is_fitted stay. */
static bool
take_surfaces (const char *like, const bool *is_fitted, GString *text, GError **error)
{
  g_autoptr (PodChip) chip = pod_chip_load (like, NULL, error);

  if (chip == NULL)
    return false;
  for (unsigned i = 0; i < POD_N_SURFACES; i++)
    {
      const char *name = pod_chip_surface_name ((PodChipSurface) i);
      g_autofree char *source
          = g_strdup_printf ("of %s: %s", chip->title, find_source (chip, name));
      g_autofree char *element = NULL;

      if (is_fitted[i] || chip->surfaces[i] == NULL)
        continue;
      element = pod_chip_surface_to_xml ((PodChipSurface) i, chip->surfaces[i], source);
      if (!put_element (text, name, element, error))
        return false;
    }
  return true;
}

/* Drops the surfaces that the tables will give anew, so that none leans on what it was before. */
static void
drop_surfaces (PodChip *chip, const GPtrArray *tables)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (stages); i++)
    {
      const char *source = NULL;
      g_autoptr (GArray) samples = pick_samples (tables, stages[i].kinds, stages[i].dtype, &source);

      for (unsigned j = 0; samples->len > 0 && j < stages[i].n_grids; j++)
        g_clear_pointer (&chip->surfaces[stages[i].grids[j].kind], pod_surface_free);
    }
}

/* -- all --------------------------------------------------------------------------------------- */

static bool
run_stage (PodChip *chip, const GPtrArray *tables, unsigned index, GString *text, bool *is_fitted,
           GArray *out_stages, GError **error)
{
  PodKernelStage stage = { .name = stages[index].name, .dtype = stages[index].dtype };
  const char *source = NULL;
  g_autoptr (GArray) samples = pick_samples (tables, stages[index].kinds, stage.dtype, &source);
  g_autofree char *description = NULL;

  if (samples->len == 0)
    return true;
  if (!pod_fit_kernels (chip, samples, stages[index].grids, stages[index].n_grids, &stage.fit,
                        error))
    return false;
  description = describe (&stage, source);
  for (unsigned i = 0; i < stages[index].n_grids; i++)
    {
      PodChipSurface kind = stages[index].grids[i].kind;
      g_autofree char *element = pod_chip_surface_to_xml (kind, chip->surfaces[kind], description);

      if (!put_element (text, pod_chip_surface_name (kind), element, error))
        return false;
      is_fitted[kind] = true;
    }
  g_array_append_val (out_stages, stage);
  return true;
}

bool
pod_calibrate_kernels (const PodKernelCalibration *request, GArray *out_stages, GError **error)
{
  g_autoptr (PodChip) chip = pod_chip_load (request->chip, NULL, error);
  g_autoptr (GPtrArray) tables = NULL;
  g_autofree char *before = NULL;
  g_autoptr (GString) text = NULL;
  bool is_fitted[POD_N_SURFACES] = { false };
  size_t n_bytes = 0;

  if (chip == NULL)
    return false;
  tables = load_tables (request, error);
  before
      = tables != NULL ? pod_file_read (chip->file, POD_FILE_LIMIT_BYTES, &n_bytes, error) : NULL;
  if (before == NULL)
    return false;
  text = g_string_new (before);
  drop_surfaces (chip, tables);
  for (unsigned i = 0; i < G_N_ELEMENTS (stages); i++)
    if (!run_stage (chip, tables, i, text, is_fitted, out_stages, error))
      return false;
  if (request->like != NULL && !take_surfaces (request->like, is_fitted, text, error))
    return false;
  if (out_stages->len > 0 || request->like != NULL)
    return pod_output_save (request->write, text->str, error);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "%s has no row that a surface could be fitted to", request->tables[0]);
  return false;
}
