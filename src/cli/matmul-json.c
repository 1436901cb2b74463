#include "cli/matmul-private.h"

#include "base/json.h"

static void
set_array (const PodMatmulJob *job, JsonObject *root, const char *key, const PodArray *array)
{
  const PodArrayMesh *mesh = &job->mesh;
  g_autofree char *text = pod_array_to_text (array, mesh);
  JsonObject *object = json_object_new ();
  JsonArray *list;
  double n_devices = pod_array_mesh_n_devices (mesh);
  double n_parts = pod_array_mesh_size (mesh, pod_array_axes (array));
  double local_bytes = pod_array_local_bytes (array, mesh);

  pod_result_set_string (object, "text", text);
  pod_result_set_string (object, "name", array->name);
  pod_result_set_string (object, "dtype", pod_dtype_name (array->dtype));
  list = pod_result_get_array (object, "shape");
  for (unsigned d = 0; d < array->n_dims; d++)
    json_array_add_int_element (list, (gint64) array->size[d]);
  list = pod_result_get_array (object, "local_shape");
  for (unsigned d = 0; d < array->n_dims; d++)
    json_array_add_int_element (list, (gint64) pod_array_local_size (array, mesh, d));
  pod_result_set_double (object, "bytes", pod_array_bytes (array));
  pod_result_set_double (object, "device_bytes", local_bytes);
  pod_result_set_double (object, "all_devices_bytes", local_bytes * n_devices);
  pod_result_set_double (object, "device_ratio", 1 / n_parts);
  pod_result_set_double (object, "copies", n_devices / n_parts);
  json_object_set_object_member (root, key, object);
}

static void
set_cases (const PodMatmulJob *job, JsonObject *matmul)
{
  JsonArray *list = pod_result_get_array (matmul, "axes");
  unsigned largest = 1;

  for (unsigned axis = 0; axis < job->mesh.n_axes; axis++)
    {
      JsonObject *object = json_object_new ();
      g_autofree char *why = NULL;
      unsigned number = pod_matmul_case (job->strategies, axis, &why);
      const char name[] = { job->mesh.name[axis], '\0' };

      largest = MAX (largest, number);
      pod_result_set_string (object, "axis", name);
      pod_result_set_int (object, "size", job->mesh.size[axis]);
      pod_result_set_int (object, "case", number);
      pod_result_set_string (object, "why", why);
      json_array_add_object_element (list, object);
    }
  pod_result_set_int (matmul, "case", largest);
}

static JsonObject *
step_to_json (const PodMatmulJob *job, const PodShardStep *step, bool is_before)
{
  JsonObject *object = json_object_new ();
  g_autofree char *axes = pod_array_mesh_mask_text (&job->mesh, step->axes);

  pod_result_set_string (object, "kind", pod_step_name (step->kind));
  pod_result_set_string (object, "array",
                         pod_matmul_operand (job->strategies, step->operand)->name);
  pod_result_set_string (object, "axes", axes);
  pod_result_set_string (object, "when", is_before ? "before" : "after");
  return object;
}

static void
set_steps (const PodMatmulJob *job, const PodPricedMatmul *priced, JsonObject *object)
{
  const PodMatmulStrategy *strategy = priced->strategy;
  JsonArray *list = pod_result_get_array (object, "collectives");
  JsonArray *slices = pod_result_get_array (object, "slices");
  guint index = 0;

  for (unsigned s = 0; s < strategy->n_steps; s++)
    {
      const PodPricedStep *step;
      JsonObject *item = step_to_json (job, &strategy->steps[s], s < strategy->n_before);

      if (strategy->steps[s].kind == POD_STEP_SLICE)
        {
          json_array_add_object_element (slices, item);
          continue;
        }
      step = g_ptr_array_index (priced->steps, index++);
      pod_result_set_int (item, "ranks", step->n_ranks);
      pod_result_set_int (item, "groups", step->n_groups);
      pod_result_set_double (item, "payload_bytes", step->payload_bytes);
      pod_result_set_double (item, "device_bytes", step->device_bytes);
      pod_result_set_double (item, "time_s", step->time_s);
      pod_result_set_string (item, "algorithm", step->algorithm);
      pod_result_set_int (item, "steps", step->n_steps);
      pod_result_set_double (item, "contention", step->contention_ratio);
      pod_result_set_string (item, "explain", step->explain);
      json_array_add_object_element (list, item);
    }
}

static void
set_loops (const PodMatmulJob *job, const PodPricedMatmul *priced, JsonObject *object)
{
  const PodMatmulStrategies *all = job->strategies;

  for (unsigned axis = 0; axis < job->mesh.n_axes; axis++)
    {
      unsigned loop = priced->strategy->loop_of_axis[axis];
      g_autofree char *path = g_strdup_printf ("split.%c", job->mesh.name[axis]);
      const char letter[] = { loop == POD_NO_LOOP ? '\0' : all->loop[loop], '\0' };

      pod_result_set_string (object, path, loop == POD_NO_LOOP ? "none" : letter);
    }
  for (unsigned loop = 0; loop < all->n_loops; loop++)
    {
      g_autofree char *path = g_strdup_printf ("local_shape.%c", all->loop[loop]);

      pod_result_set_int (object, path, (int64_t) priced->strategy->local[loop]);
    }
  for (unsigned loop = 0; loop < all->n_loops && priced->comm_s > 0; loop++)
    {
      g_autofree char *path = g_strdup_printf ("critical.%c", all->loop[loop]);

      pod_result_set_double (object, path, priced->critical[loop]);
    }
}

static JsonObject *
priced_to_json (const PodMatmulJob *job, const PodPricedMatmul *priced)
{
  const PodMatmulStrategy *strategy = priced->strategy;
  JsonObject *object = json_object_new ();
  g_autofree char *name = pod_matmul_strategy_name (job->strategies, strategy);
  g_autofree char *bound = pod_matmul_bound (job, priced);
  double total_bytes = pod_matmul_total_bytes (strategy);

  pod_result_set_string (object, "name", name);
  pod_result_set_bool (object, "is_by_cases", priced == job->by_cases);
  set_loops (job, priced, object);
  set_steps (job, priced, object);
  pod_result_set_double (object, "device_flops", strategy->flops);
  pod_result_set_double (object, "all_devices_flops",
                         strategy->flops * pod_array_mesh_n_devices (&job->mesh));
  pod_result_set_double (object, "work_copies", pod_matmul_work_copies (job, strategy));
  pod_result_set_double (object, "argument_bytes", strategy->argument_bytes);
  pod_result_set_double (object, "output_bytes", strategy->output_bytes);
  pod_result_set_double (object, "workspace_bytes", strategy->workspace_bytes);
  pod_result_set_double (object, "device_bytes", total_bytes);
  pod_result_set_bool (object, "fits", total_bytes <= job->capacity_bytes);
  pod_result_set_double (object, "compute_s", priced->compute.time_s);
  pod_result_set_double (object, "flop_s", priced->compute.flop_s);
  pod_result_set_double (object, "memory_s", priced->compute.memory_s);
  pod_result_set_double (object, "comm_s", priced->comm_s);
  pod_result_set_double (object, "serial_s", priced->serial_s);
  pod_result_set_double (object, "overlapped_s", priced->overlapped_s);
  pod_result_set_int (object, "pieces", priced->n_pieces);
  pod_result_set_string (object, "bound", bound);
  return object;
}

static void
set_name (const PodMatmulJob *job, JsonObject *matmul, const char *key,
          const PodPricedMatmul *priced)
{
  g_autofree char *name = NULL;

  if (priced == NULL)
    return;
  name = pod_matmul_strategy_name (job->strategies, priced->strategy);
  pod_result_set_string (matmul, key, name);
}

static void
set_matmul (const PodMatmulJob *job, JsonObject *root)
{
  JsonObject *matmul = json_object_new ();
  g_autofree char *text = pod_einsum_to_text (&job->einsum, &job->mesh);
  const PodPricedMatmul *best = g_ptr_array_index (job->prices, 0);
  JsonArray *list;

  pod_result_set_string (matmul, "expression", text);
  pod_result_set_string (matmul, "compute_dtype", pod_dtype_name (job->compute_dtype));
  set_cases (job, matmul);
  set_name (job, matmul, "by_cases", job->by_cases);
  set_name (job, matmul, "best", best);
  set_name (job, matmul, "best_overlapped", job->best_overlapped);
  pod_result_set_double (matmul, "flops", pod_matmul_flops (job));
  set_array (job, matmul, "lhs", &job->einsum.lhs);
  set_array (job, matmul, "rhs", &job->einsum.rhs);
  set_array (job, matmul, "out", &job->einsum.out);
  pod_result_set_double (matmul, "capacity_bytes", job->capacity_bytes);
  pod_result_set_int (matmul, "left_out", job->strategies->n_indivisible);
  list = pod_result_get_array (matmul, "strategies");
  for (guint i = 0; i < job->prices->len; i++)
    json_array_add_object_element (list, priced_to_json (job, g_ptr_array_index (job->prices, i)));
  json_object_set_object_member (root, "matmul", matmul);
}

static void
set_machine (const PodMatmulJob *job, JsonObject *root)
{
  g_autofree char *placement = NULL;

  for (unsigned axis = 0; axis < job->mesh.n_axes; axis++)
    {
      g_autofree char *path = g_strdup_printf ("mesh.%c", job->mesh.name[axis]);

      pod_result_set_int (root, path, job->mesh.size[axis]);
    }
  if (job->topology == NULL)
    return;
  placement = pod_array_mesh_placement_text (&job->mesh);
  pod_result_set_string (root, "topology", job->topology->name);
  pod_result_set_string (root, "fidelity", pod_fidelity_name (job->fidelity));
  pod_result_set_string (root, "map", placement);
}

bool
pod_matmul_write_json (const PodMatmulJob *job, GError **error)
{
  g_autoptr (JsonObject) root = json_object_new ();
  char **overrides = job->options.overrides;
  JsonArray *list;

  pod_result_set_int (root, "schema_version", 1);
  pod_result_set_string (root, "command", "matmul");
  set_machine (job, root);
  if (job->einsum.is_matmul)
    set_matmul (job, root);
  else
    {
      set_array (job, root, "array", &job->einsum.lhs);
      if (job->topology != NULL)
        pod_result_set_double (root, "array.read_s", job->read_s);
    }
  list = pod_result_get_array (root, "overrides");
  for (unsigned i = 0; overrides != NULL && overrides[i] != NULL; i++)
    json_array_add_string_element (list, overrides[i]);
  list = pod_result_get_array (root, "assumptions");
  for (unsigned i = 0; i < job->assumptions->len; i++)
    json_array_add_string_element (list, job->assumptions->pdata[i]);
  return pod_cli_write_json (root, job->options.json, error);
}
