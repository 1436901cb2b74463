#include "cli/roofline-private.h"

#include "base/error.h"
#include "base/units.h"
#include "cli/cli.h"
#include "import/topology-import.h"

#include <string.h>

/* podsim roofline: one operation on one device. */

static void
job_clear (PodRooflineJob *job)
{
  PodRooflineOptions *options = &job->options;

  g_free (options->topology);
  g_free (options->op);
  g_free (options->shape);
  g_free (options->dtype);
  g_free (options->weight_dtype);
  g_free (options->out_dtype);
  g_free (options->compute_dtype);
  g_free (options->place);
  g_free (options->fidelity);
  g_free (options->json);
  g_strfreev (options->overrides);
  pod_topology_free (job->topology);
  pod_chip_free (job->own_chip);
  g_clear_pointer (&job->assumptions, g_ptr_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodRooflineJob, job_clear)

/* -- options ----------------------------------------------------------------------------------- */

static bool
parse_options (PodRooflineOptions *options, int *argc, char ***argv, int *out_status)
{
  const GOptionEntry entries[] = {
    { "topology", 0, 0, G_OPTION_ARG_FILENAME, &options->topology,
      "A machine or a chip: h100:8, tpu-v5e:4x4, b200", "T" },
    { "op", 0, 0, G_OPTION_ARG_FILENAME, &options->op, "matmul (default), attention, vector or copy",
      "OP" },
    { "shape", 0, 0, G_OPTION_ARG_FILENAME, &options->shape,
      "matmul X[B,D].Y[D,F], G independent ones: B=,D=,F=[,G=]; attention: [B=,]T=,S=,N=[,K=],H=; "
      "vector: elements=[,flops=][,read=][,write=], each per element; copy: bytes= or read=,write=",
      "KEY=N,…" },
    { "dtype", 0, 0, G_OPTION_ARG_FILENAME, &options->dtype,
      "Of activations and results (default bf16)", "D" },
    { "weight-dtype", 0, 0, G_OPTION_ARG_FILENAME, &options->weight_dtype,
      "Of a matmul's weights (default: as --dtype)", "D" },
    { "out-dtype", 0, 0, G_OPTION_ARG_FILENAME, &options->out_dtype,
      "Of a matmul's results (default: as --dtype)", "D" },
    { "compute-dtype", 0, 0, G_OPTION_ARG_FILENAME, &options->compute_dtype,
      "Of the arithmetic (default: as --dtype)", "D" },
    { "from", 0, 0, G_OPTION_ARG_FILENAME, &options->place,
      "Where the operands live: hbm (default), vmem or host", "PLACE" },
    { "causal", 0, 0, G_OPTION_ARG_NONE, &options->is_causal, "Attention under a causal mask",
      NULL },
    { "fidelity", 0, 0, G_OPTION_ARG_FILENAME, &options->fidelity,
      "book, ideal or calibrated (default)", "F" },
    { "set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->overrides,
      "Override a number of the chip: chip.hbm_bandwidth=1.2TB/s (repeatable)", "PATH=VALUE" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options->json,
      "Write every number to FILE, - is stdout", "FILE" },
    { "explain", 0, 0, G_OPTION_ARG_NONE, &options->is_explained,
      "Show the formula, tiles, waves and padding", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);

  g_option_context_set_summary (context,
                                "The roofline of one operation on one device: its time, what "
                                "bounds it, its arithmetic intensity,\nand the batch at which "
                                "it turns compute-bound.");
  return pod_cli_parse (context, entries, argc, argv, 0, out_status);
}

/* NULL stands for @fallback. */
static bool
parse_dtype (const char *option, const char *text, PodDtype fallback, PodDtype *out, GError **error)
{
  *out = fallback;
  if (text == NULL || pod_dtype_parse (text, out, error))
    return true;
  g_prefix_error (error, "--%s: ", option);
  return false;
}

static bool
parse_choices (PodRooflineJob *job, GError **error)
{
  const PodRooflineOptions *options = &job->options;
  PodRooflineInput *input = &job->input;

  if (options->op != NULL && !pod_roofline_op_parse (options->op, &input->op, error))
    {
      g_prefix_error (error, "--op: ");
      return false;
    }
  if (options->place != NULL && !pod_place_parse (options->place, &input->place, error))
    {
      g_prefix_error (error, "--from: ");
      return false;
    }
  job->fidelity = POD_FIDELITY_CALIBRATED;
  if (options->fidelity != NULL && !pod_fidelity_parse (options->fidelity, &job->fidelity, error))
    {
      g_prefix_error (error, "--fidelity: ");
      return false;
    }
  return parse_dtype ("dtype", options->dtype, POD_DTYPE_BF16, &input->dtype, error)
         && parse_dtype ("weight-dtype", options->weight_dtype, input->dtype, &input->weight_dtype,
                         error)
         && parse_dtype ("out-dtype", options->out_dtype, input->dtype, &input->out_dtype, error)
         && parse_dtype ("compute-dtype", options->compute_dtype, input->dtype,
                         &input->compute_dtype, error);
}

/* -- shapes ------------------------------------------------------------------------------------ */

/* A key of --shape: whole goes to an extent, else number takes any quantity. */
typedef struct
{
  const char *name;
  uint64_t *whole;
  double *number;
  PodUnit unit;
  bool is_required;
  bool is_given;
} ShapeKey;

static bool
set_shape_key (ShapeKey *keys, const char *name, const char *value, GError **error)
{
  bool is_read;
  ShapeKey *key = keys;

  while (key->name != NULL && strcmp (key->name, name) != 0)
    key++;
  if (key->name == NULL)
    {
      g_autoptr (GString) known = g_string_new (NULL);

      for (key = keys; key->name != NULL; key++)
        g_string_append_printf (known, "%s%s", key == keys ? "" : ", ", key->name);
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--shape: this op has no '%s', its keys are %s", name, known->str);
      return false;
    }
  if (key->is_given)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shape: %s stands twice", name);
      return false;
    }
  is_read = key->whole != NULL ? pod_parse_whole (value, key->unit, key->whole, error)
                               : pod_parse_quantity (value, key->unit, key->number, error);
  if (!is_read)
    g_prefix_error (error, "--shape: %s: ", name);
  key->is_given = true;
  return is_read;
}

/* Reads "KEY=VALUE,KEY=VALUE" into @keys, which end with a NULL name. */
static bool
read_shape (const char *text, ShapeKey *keys, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text == NULL ? "" : text, ",", -1);

  for (unsigned i = 0; parts[i] != NULL; i++)
    {
      char *equals = strchr (parts[i], '=');

      if (equals == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--shape: expected KEY=NUMBER, got '%s'", parts[i]);
          return false;
        }
      *equals = '\0';
      if (!set_shape_key (keys, g_strstrip (parts[i]), g_strstrip (equals + 1), error))
        return false;
    }
  for (const ShapeKey *key = keys; key->name != NULL; key++)
    if (key->is_required && !key->is_given)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shape: %s is missing, as in %s=4096",
                     key->name, key->name);
        return false;
      }
  return true;
}

static bool
parse_attention_shape (const char *text, PodRooflineInput *input, GError **error)
{
  ShapeKey keys[] = {
    { .name = "B", .whole = &input->attention.b },
    { .name = "T", .whole = &input->attention.t, .is_required = true },
    { .name = "S", .whole = &input->attention.s, .is_required = true },
    { .name = "N", .whole = &input->attention.n, .is_required = true },
    { .name = "K", .whole = &input->attention.k },
    { .name = "H", .whole = &input->attention.h, .is_required = true },
    { .name = NULL },
  };

  input->attention.b = 1;
  if (!read_shape (text, keys, error))
    return false;
  if (!keys[4].is_given)
    input->attention.k = input->attention.n;
  return true;
}

static bool
parse_vector_shape (const char *text, PodRooflineInput *input, GError **error)
{
  ShapeKey keys[] = {
    { .name = "elements", .number = &input->vector.elements, .is_required = true },
    { .name = "flops", .number = &input->vector.flops },
    { .name = "read", .number = &input->vector.read_bytes, .unit = POD_UNIT_BYTES },
    { .name = "write", .number = &input->vector.write_bytes, .unit = POD_UNIT_BYTES },
    { .name = NULL },
  };

  input->vector.flops = 1.0;
  input->vector.read_bytes = input->vector.write_bytes = pod_dtype_bytes (input->dtype);
  return read_shape (text, keys, error);
}

static bool
parse_copy_shape (const char *text, PodRooflineInput *input, GError **error)
{
  double n_bytes = 0.0;
  ShapeKey keys[] = {
    { .name = "bytes", .number = &n_bytes, .unit = POD_UNIT_BYTES },
    { .name = "read", .number = &input->copy.read_bytes, .unit = POD_UNIT_BYTES },
    { .name = "write", .number = &input->copy.write_bytes, .unit = POD_UNIT_BYTES },
    { .name = NULL },
  };

  if (!read_shape (text, keys, error))
    return false;
  input->copy.read_bytes += n_bytes;
  return true;
}

static bool
parse_shape (const char *text, PodRooflineInput *input, GError **error)
{
  ShapeKey matmul[] = {
    { .name = "B", .whole = &input->matmul.b, .is_required = true },
    { .name = "D", .whole = &input->matmul.d, .is_required = true },
    { .name = "F", .whole = &input->matmul.f, .is_required = true },
    { .name = "G", .whole = &input->matmul.groups },
    { .name = NULL },
  };

  input->matmul.groups = 1;
  switch (input->op)
    {
    case POD_ROOFLINE_ATTENTION:
      return parse_attention_shape (text, input, error);
    case POD_ROOFLINE_VECTOR:
      return parse_vector_shape (text, input, error);
    case POD_ROOFLINE_COPY:
      return parse_copy_shape (text, input, error);
    case POD_ROOFLINE_MATMUL:
    default:
      return read_shape (text, matmul, error);
    }
}

/* -- the machine ------------------------------------------------------------------------------- */

static bool
apply_override (PodRooflineJob *job, const char *text, GError **error)
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
  if (job->topology != NULL)
    {
      if (pod_topology_set (job->topology, path, equals + 1, error))
        return true;
    }
  else if (!g_str_has_prefix (path, "chip."))
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "a bare chip has numbers chip.… only, got '%s'", path);
  else if (pod_chip_set (job->own_chip, path + strlen ("chip."), equals + 1, error))
    return true;
  g_prefix_error (error, "--set: ");
  return false;
}

static bool
is_chip_name (const char *text)
{
  g_autoptr (GPtrArray) names = pod_chip_names ();

  for (unsigned i = 0; i < names->len; i++)
    if (strcmp (names->pdata[i], text) == 0)
      return true;
  return false;
}

/* "h100" is a chip, "h100:8" a machine made of it; the roofline needs one device of either. */
static bool
load_machine (PodRooflineJob *job, GError **error)
{
  const char *text = job->options.topology;

  if (text == NULL)
    {
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                           "--topology: is missing, for example h100:8");
      return false;
    }
  job->assumptions = g_ptr_array_new_with_free_func (g_free);
  if (is_chip_name (text))
    job->own_chip = pod_chip_load (text, job->assumptions, error);
  else
    job->topology = pod_import_topology (text, NULL, error);
  if (job->own_chip == NULL && job->topology == NULL)
    {
      pod_error_prefix_option (error, "--topology");
      return false;
    }
  for (char **override = job->options.overrides; override != NULL && *override != NULL; override++)
    if (!apply_override (job, *override, error))
      return false;
  /* only now: an override of the machine builds it anew */
  job->chip = job->topology != NULL ? job->topology->chip : job->own_chip;
  return true;
}

/* What was taken for granted: defaults of the chip, and a dtype that it does not have. */
static void
note_assumptions (PodRooflineJob *job)
{
  GPtrArray *inherited = job->topology != NULL ? job->topology->assumptions : NULL;
  bool is_matrix = job->input.op == POD_ROOFLINE_MATMUL || job->input.op == POD_ROOFLINE_ATTENTION;

  for (unsigned i = 0; inherited != NULL && i < inherited->len; i++)
    g_ptr_array_add (job->assumptions, g_strdup (inherited->pdata[i]));
  if (is_matrix && job->result.used_dtype != job->input.compute_dtype)
    g_ptr_array_add (job->assumptions,
                     g_strdup_printf ("%s has no %s arithmetic: %s assumed", job->chip->name,
                                      pod_dtype_name (job->input.compute_dtype),
                                      pod_dtype_name (job->result.used_dtype)));
}

static bool
run (PodRooflineJob *job, GError **error)
{
  if (!parse_choices (job, error) || !parse_shape (job->options.shape, &job->input, error)
      || !load_machine (job, error))
    return false;
  if (!pod_roofline_compute (job->chip, job->fidelity, &job->input, &job->result, error))
    {
      bool is_place = g_error_matches (*error, POD_ERROR, POD_ERROR_UNSUPPORTED);

      g_prefix_error (error, is_place ? "--from: " : "--shape: ");
      return false;
    }
  note_assumptions (job);
  if (job->options.json != NULL && !pod_roofline_write_json (job, error))
    return false;
  if (g_strcmp0 (job->options.json, "-") != 0)
    pod_roofline_print (job);
  return true;
}

int
pod_cmd_roofline (int argc, char **argv)
{
  g_auto (PodRooflineJob) job = { .options = { .topology = NULL } };
  g_autoptr (GError) error = NULL;
  int status = 0;

  if (!parse_options (&job.options, &argc, &argv, &status))
    return status;
  return run (&job, &error) ? 0 : pod_cli_fail (error);
}
