#include "cli/matmul-private.h"

#include <string.h>

#include "base/error.h"

/* podsim matmul: a sharded matmul in the book's notation, and every way to do it. */

static void
job_clear (PodMatmulJob *job)
{
  PodMatmulOptions *options = &job->options;

  g_free (options->topology);
  g_free (options->mesh);
  g_free (options->map);
  g_free (options->order);
  g_free (options->shape);
  g_free (options->dtype);
  g_free (options->split);
  g_free (options->fidelity);
  g_free (options->json);
  g_free (options->library);
  g_free (options->algorithm);
  pod_library_free (job->library);
  g_strfreev (options->overrides);
  g_clear_pointer (&job->prices, g_ptr_array_unref);
  pod_matmul_strategies_free (job->strategies);
  pod_topology_free (job->topology);
  g_clear_pointer (&job->assumptions, g_ptr_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodMatmulJob, job_clear)

/* ---- options ---- */

static bool
parse_options (PodMatmulOptions *options, int *argc, char ***argv, int *out_status)
{
  const GOptionEntry entries[] = {
    { "topology", 0, 0, G_OPTION_ARG_FILENAME, &options->topology,
      "Machine: file, name or shape expression", "T" },
    { "mesh", 0, 0, G_OPTION_ARG_FILENAME, &options->mesh, "Axes and their sizes: X=4,Y=4",
      "AXIS=N,…" },
    { "map", 0, 0, G_OPTION_ARG_FILENAME, &options->map,
      "Mesh axes on those of a torus, innermost first: \"X=x Y=y:2,z\"", "MAP" },
    { "order", 0, 0, G_OPTION_ARG_FILENAME, &options->order,
      "Mesh axes on a switched machine, innermost first (default: the last is innermost)", "AXES" },
    { "shape", 0, 0, G_OPTION_ARG_FILENAME, &options->shape, "Sizes: I=8192,J=4096,K=16384",
      "DIM=N,…" },
    { "dtype", 0, 0, G_OPTION_ARG_FILENAME, &options->dtype,
      "Of arrays that name none (default bf16)", "D" },
    { "split", 0, 0, G_OPTION_ARG_FILENAME, &options->split,
      "Only strategies in which these axes cut these dimensions: X=J,Y=none", "AXIS=DIM,…" },
    { "fidelity", 0, 0, G_OPTION_ARG_FILENAME, &options->fidelity,
      "book, ideal or calibrated (default)", "F" },
    { "algorithm", 0, 0, G_OPTION_ARG_FILENAME, &options->algorithm,
      "Of the collectives that it can do, ring/ll128 with its protocol (default auto)", "A" },
    { "library", 0, 0, G_OPTION_ARG_FILENAME, &options->library,
      "Whose cost tables: nccl-2.27, rccl, xla, a file; none (default: the vendor's)", "L" },
    { "set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->overrides,
      "Override a number of the machine (repeatable)", "PATH=VALUE" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options->json,
      "Write every number to FILE, - is stdout", "FILE" },
    { "explain", 0, 0, G_OPTION_ARG_NONE, &options->is_explained,
      "Show all strategies, and what each collective costs and why", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("'A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]'");

  g_option_context_set_summary (
      context,
      "A sharded matmul: which of the four cases it is, every way to do it, what each "
      "sends,\nkeeps and takes, and the best. Of an array alone, A[I_X, J]: what a device holds.");
  return pod_cli_parse (context, entries, argc, argv, 1, out_status);
}

static bool
parse_choices (PodMatmulJob *job, GError **error)
{
  const PodMatmulOptions *options = &job->options;
  PodArray *const arrays[] = { &job->einsum.lhs, &job->einsum.rhs, &job->einsum.out };
  PodDtype dtype = POD_DTYPE_BF16;

  job->fidelity = POD_FIDELITY_CALIBRATED;
  if (options->fidelity != NULL && !pod_fidelity_parse (options->fidelity, &job->fidelity, error))
    {
      g_prefix_error (error, "--fidelity: ");
      return false;
    }
  if (options->dtype != NULL && !pod_dtype_parse (options->dtype, &dtype, error))
    {
      g_prefix_error (error, "--dtype: ");
      return false;
    }
  for (unsigned i = 0; i < G_N_ELEMENTS (arrays); i++)
    if (!arrays[i]->has_dtype)
      arrays[i]->dtype = dtype;
  job->compute_dtype
      = pod_dtype_bytes (job->einsum.rhs.dtype) > pod_dtype_bytes (job->einsum.lhs.dtype)
            ? job->einsum.rhs.dtype
            : job->einsum.lhs.dtype;
  return true;
}

/* ---- the machine ---- */

static bool
apply_override (PodTopology *topology, const char *text, GError **error)
{
  const char *equals = strchr (text, '=');
  g_autofree char *path = NULL;

  if (equals == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--set: expected PATH=VALUE, got '%s'",
                   text);
      return false;
    }
  path = g_strndup (text, (size_t) (equals - text));
  if (pod_topology_set (topology, path, equals + 1, error))
    return true;
  g_prefix_error (error, "--set: ");
  return false;
}

/* Without a machine there are sizes, but no times. */
static bool
load_machine (PodMatmulJob *job, GError **error)
{
  const PodMatmulOptions *options = &job->options;

  if (options->topology == NULL)
    {
      if (!job->einsum.is_matmul && options->overrides == NULL && options->map == NULL
          && options->order == NULL)
        return true;
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                           "--topology: is missing, for example tpu-v5e:4x4");
      return false;
    }
  job->topology = pod_topology_load (options->topology, error);
  if (job->topology == NULL)
    {
      pod_error_prefix_option (error, "--topology");
      return false;
    }
  for (char **override = options->overrides; override != NULL && *override != NULL; override++)
    if (!apply_override (job->topology, *override, error))
      return false;
  return true;
}

/* --library and --algorithm, checked by name. */
static bool
choose_collectives (PodMatmulJob *job, GError **error)
{
  const char *asked = job->options.algorithm;

  if (job->topology == NULL)
    return true;
  if (asked != NULL && strcmp (asked, "auto") != 0)
    {
      if (!pod_collective_check_algorithm (asked, error))
        {
          g_prefix_error (error, "--algorithm: ");
          return false;
        }
      job->algorithm = asked;
    }
  return pod_cli_choose_library (job->topology, job->fidelity, job->options.library, &job->library,
                                 error);
}

/* Messages about --map and --order name them; the others are about the mesh. */
static bool
place_mesh (PodMatmulJob *job, GError **error)
{
  if (job->topology == NULL
      || pod_array_mesh_place (&job->mesh, job->topology, job->options.map, job->options.order,
                               error))
    return true;
  if (!g_str_has_prefix ((*error)->message, "--"))
    g_prefix_error (error, "--mesh: ");
  return false;
}

static void
note_assumptions (PodMatmulJob *job)
{
  PodDtype used;
  uint32_t n_devices = pod_array_mesh_n_devices (&job->mesh);

  if (job->topology == NULL)
    return;
  for (unsigned i = 0; i < job->topology->assumptions->len; i++)
    g_ptr_array_add (job->assumptions, g_strdup (job->topology->assumptions->pdata[i]));
  if (job->library != NULL && job->topology->chip != NULL)
    g_ptr_array_add (job->assumptions, pod_library_describe (job->library, job->topology->chip));
  if (n_devices < job->topology->n_devices)
    g_ptr_array_add (job->assumptions,
                     g_strdup_printf ("the mesh takes %u of %u devices, the others are idle",
                                      n_devices, job->topology->n_devices));
  if (!job->einsum.is_matmul)
    return;
  (void) pod_chip_peak (job->topology->chip, job->compute_dtype, job->fidelity == POD_FIDELITY_BOOK,
                        &used);
  if (used != job->compute_dtype)
    g_ptr_array_add (job->assumptions,
                     g_strdup_printf ("%s has no %s arithmetic: %s assumed",
                                      job->topology->chip->name,
                                      pod_dtype_name (job->compute_dtype), pod_dtype_name (used)));
  if (job->strategies->n_indivisible > 0)
    g_ptr_array_add (job->assumptions,
                     g_strdup_printf ("%u strategies are left out that do not divide, such as: %s",
                                      job->strategies->n_indivisible,
                                      job->strategies->indivisible));
}

/* ---- running ---- */

/* The part of an array that one device holds, read once. */
static bool
time_array (PodMatmulJob *job, GError **error)
{
  PodRooflineInput input = { .op = POD_ROOFLINE_COPY };
  PodRoofline result;

  if (job->topology == NULL)
    return true;
  input.copy.read_bytes = pod_array_local_bytes (&job->einsum.lhs, &job->mesh);
  if (!pod_roofline_compute (job->topology->chip, job->fidelity, &input, &result, error))
    return false;
  job->read_s = result.time.time_s;
  return true;
}

static bool
price_matmul (PodMatmulJob *job, GError **error)
{
  int pinned[POD_MAX_MESH_AXES];
  PodMatmulPricing pricing;

  if (job->options.split != NULL
      && !pod_matmul_parse_split (&job->einsum, &job->mesh, job->options.split, pinned, error))
    {
      g_prefix_error (error, "--split: ");
      return false;
    }
  job->strategies = pod_matmul_strategies_new (&job->einsum, &job->mesh,
                                               job->options.split != NULL ? pinned : NULL, error);
  if (job->strategies == NULL)
    return false;
  pricing = (PodMatmulPricing){ job->fidelity, job->compute_dtype, job->library, job->algorithm };
  job->prices = pod_matmul_price (job->strategies, &pricing, error);
  if (job->prices == NULL)
    return false;
  for (guint i = 0; i < job->prices->len; i++)
    {
      const PodPricedMatmul *priced = g_ptr_array_index (job->prices, i);

      if ((int) priced->index == job->strategies->by_cases)
        job->by_cases = priced;
      if (job->best_overlapped == NULL
          || priced->overlapped_s < job->best_overlapped->overlapped_s * (1 - 1e-12))
        job->best_overlapped = priced;
    }
  return true;
}

/* What a device's memory holds beside what the runtime takes; the book counts the whole. */
static double
capacity_bytes (const PodMatmulJob *job)
{
  const PodChip *chip = job->topology->chip;
  double n_devices = MAX (1u, chip->devices_per_chip);

  if (job->fidelity == POD_FIDELITY_BOOK)
    return chip->hbm_bytes.book / n_devices;
  return chip->hbm_bytes.nominal / n_devices - chip->reserved_bytes;
}

static bool
check_options (const PodMatmulJob *job, GError **error)
{
  if (job->einsum.is_matmul || job->options.split == NULL)
    return true;
  g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                       "--split: an array alone has no strategies");
  return false;
}

static bool
run (PodMatmulJob *job, const char *expression, GError **error)
{
  job->assumptions = g_ptr_array_new_with_free_func (g_free);
  if (job->options.mesh != NULL && !pod_array_mesh_parse (job->options.mesh, &job->mesh, error))
    {
      g_prefix_error (error, "--mesh: ");
      return false;
    }
  if (!pod_einsum_parse (expression, &job->mesh, &job->einsum, error))
    {
      g_prefix_error (error, "expression: ");
      return false;
    }
  if (!parse_choices (job, error) || !check_options (job, error)
      || !pod_einsum_set_shape (&job->einsum, &job->mesh, job->options.shape, error)
      || !load_machine (job, error) || !choose_collectives (job, error) || !place_mesh (job, error)
      || !(job->einsum.is_matmul ? price_matmul (job, error) : time_array (job, error)))
    return false;
  if (job->topology != NULL)
    job->capacity_bytes = capacity_bytes (job);
  note_assumptions (job);
  if (job->options.json != NULL && !pod_matmul_write_json (job, error))
    return false;
  if (g_strcmp0 (job->options.json, "-") != 0)
    pod_matmul_print (job);
  return true;
}

int
pod_cmd_matmul (int argc, char **argv)
{
  g_auto (PodMatmulJob) job = { .options = { .topology = NULL } };
  g_autoptr (GError) error = NULL;
  int status = 0;

  if (!parse_options (&job.options, &argc, &argv, &status))
    return status;
  if (argc < 2)
    return pod_cli_refuse (
        "matmul: an expression is missing, such as 'A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]'");
  return run (&job, argv[1], &error) ? 0 : pod_cli_fail (error);
}
