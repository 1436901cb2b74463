#include "report/report-private.h"

#include "base/json.h"
#include "base/output.h"

/* `--dump-program`: the expanded program as JSON lines; docs/format/program.md says what they mean.
 */

static const char *const phase_names[] = {
  [POD_PHASE_FORWARD] = "forward",
  [POD_PHASE_BACKWARD] = "backward",
  [POD_PHASE_RECOMPUTE] = "recompute",
  [POD_PHASE_OPTIMIZER] = "optimizer",
};

static const char *const kernel_names[] = {
  [POD_KERNEL_MATMUL] = "matmul",
  [POD_KERNEL_ATTENTION] = "attention",
  [POD_KERNEL_ATTENTION_BACKWARD] = "attention_backward",
  [POD_KERNEL_VECTOR] = "vector",
  [POD_KERNEL_OPTIMIZER] = "optimizer",
};

/* Takes @line. */
static void
write_line (PodOutput *output, JsonObject *line)
{
  g_autoptr (JsonNode) root = json_node_alloc ();
  g_autofree char *text = NULL;

  json_node_take_object (root, line);
  text = pod_json_to_line (root);
  pod_output_printf (output, "%s\n", text);
}

static const char *
label_name (const PodProgram *program, uint32_t label)
{
  return g_array_index (program->labels, PodBufferLabel, label).name;
}

static void
write_head (PodOutput *output, const PodProgram *program)
{
  JsonObject *line = json_object_new ();
  JsonArray *streams;
  JsonArray *labels;

  pod_result_set_string (line, "record", "program");
  pod_result_set_int (line, "format", 1);
  pod_result_set_int (line, "ranks", program->n_ranks);
  pod_result_set_int (line, "classes", program->classes->len);
  pod_result_set_int (line, "blocks", program->blocks->len);
  pod_result_set_int (line, "ops", program->ops->len);
  streams = pod_result_get_array (line, "streams");
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    json_array_add_string_element (streams, pod_stream_names[s]);
  labels = pod_result_get_array (line, "buffers");
  for (guint l = 0; l < program->labels->len; l++)
    {
      const PodBufferLabel *label = &g_array_index (program->labels, PodBufferLabel, l);
      JsonArray *entry = json_array_new ();

      json_array_add_string_element (entry, label->name);
      json_array_add_string_element (entry, pod_memory_use_names[label->use]);
      json_array_add_array_element (labels, entry);
    }
  write_line (output, line);
}

/* -- classes ----------------------------------------------------------------------------------- */

static void
add_steps (JsonArray *steps, const GArray *list)
{
  for (guint i = 0; i < list->len; i++)
    {
      const PodOpStep *step = &g_array_index (list, PodOpStep, i);
      JsonArray *entry = json_array_new ();

      json_array_add_int_element (entry, step->block);
      json_array_add_int_element (entry, step->microbatch);
      json_array_add_array_element (steps, entry);
    }
}

static void
write_class (PodOutput *output, const PodProgram *program, guint index)
{
  const PodProgramClass *class = g_ptr_array_index (program->classes, index);
  JsonObject *line = json_object_new ();
  JsonObject *held = json_object_new ();
  int64_t n_ranks = 0;
  int64_t first_rank = -1;

  for (uint32_t r = 0; r < program->n_ranks; r++)
    if (program->class_of_rank[r] == index)
      {
        first_rank = n_ranks == 0 ? r : first_rank;
        n_ranks++;
      }
  pod_result_set_string (line, "record", "class");
  pod_result_set_int (line, "class", index);
  pod_result_set_string (line, "name", class->name);
  pod_result_set_int (line, "ranks", n_ranks);
  pod_result_set_int (line, "first_rank", first_rank);
  for (guint l = 0; l < program->labels->len; l++)
    if (class->static_bytes[l] != 0)
      json_object_set_double_member (held, label_name (program, l), class->static_bytes[l]);
  json_object_set_object_member (line, "static_bytes", held);
  add_steps (pod_result_get_array (line, "steps"), class->steps);
  write_line (output, line);
}

/* -- operations -------------------------------------------------------------------------------- */

static void
set_kernel (JsonObject *line, const PodKernel *kernel)
{
  const struct
  {
    const char *key;
    uint64_t value;
  } shape[] = {
    { "batch", kernel->batch }, { "m", kernel->m },         { "n", kernel->n },
    { "k", kernel->k },         { "heads", kernel->heads }, { "kv_heads", kernel->kv_heads },
    { "v_dim", kernel->v_dim },
  };
  JsonObject *object = json_object_new ();

  pod_result_set_string (object, "kind", kernel_names[kernel->kind]);
  pod_result_set_string (object, "dtype", pod_dtype_name (kernel->dtype));
  for (unsigned i = 0; i < G_N_ELEMENTS (shape); i++)
    if (shape[i].value != 0)
      pod_result_set_int (object, shape[i].key, (int64_t) shape[i].value);
  if (kernel->kind == POD_KERNEL_ATTENTION || kernel->kind == POD_KERNEL_ATTENTION_BACKWARD)
    pod_result_set_bool (object, "causal", kernel->is_causal);
  pod_result_set_double (object, "flops", kernel->flops);
  pod_result_set_double (object, "read_bytes", kernel->read_bytes);
  pod_result_set_double (object, "write_bytes", kernel->write_bytes);
  json_object_set_object_member (line, "kernel", object);
}

static void
set_collective (JsonObject *line, const PodProgram *program, const PodOp *op)
{
  const PodCommunicator *comm = g_ptr_array_index (program->communicators, op->comm);
  JsonObject *object = json_object_new ();

  pod_result_set_string (object, "kind", pod_collective_name (op->collective));
  pod_result_set_string (object, "group", comm->name);
  pod_result_set_string (object, "axis", pod_axis_name (comm->axis));
  pod_result_set_int (object, "ranks", comm->group_size);
  pod_result_set_int (object, "groups", comm->n_groups);
  pod_result_set_int (object, "bytes", (int64_t) op->bytes);
  pod_result_set_string (object, "dtype", pod_dtype_name (op->dtype));
  json_object_set_object_member (line, "collective", object);
}

static void
add_dependencies (JsonArray *array, const PodProgram *program, const PodOp *op)
{
  for (uint32_t i = 0; i < op->n_deps; i++)
    {
      const PodOpDep *dep = &g_array_index (program->deps, PodOpDep, op->first_dep + i);
      JsonArray *entry = json_array_new ();

      json_array_add_string_element (entry, pod_stream_names[dep->stream]);
      json_array_add_int_element (entry, dep->count);
      json_array_add_array_element (array, entry);
    }
}

static void
add_buffers (JsonArray *array, const PodProgram *program, const PodOp *op)
{
  for (uint32_t i = 0; i < op->n_effects; i++)
    {
      const PodEffect *effect = &g_array_index (program->effects, PodEffect, op->first_effect + i);
      JsonArray *entry = json_array_new ();

      json_array_add_string_element (entry, label_name (program, effect->label));
      json_array_add_int_element (entry, effect->bytes);
      json_array_add_string_element (entry, effect->is_at_end ? "end" : "start");
      json_array_add_array_element (array, entry);
    }
}

static void
write_op (PodOutput *output, const PodProgram *program, guint block, guint index, const PodOp *op)
{
  JsonObject *line = json_object_new ();
  g_autofree char *name = pod_op_name (op);
  g_autofree char *detail = pod_op_detail (op, op->has_detail ? &g_array_index (program->kernels, PodKernel, op->kernel) : NULL);

  pod_result_set_string (line, "record", "op");
  pod_result_set_int (line, "block", block);
  pod_result_set_int (line, "op", index);
  pod_result_set_string (line, "stream", pod_stream_names[op->stream]);
  pod_result_set_string (line, "phase", phase_names[op->phase]);
  pod_result_set_string (line, "name", name);
  if (op->layer >= 0)
    pod_result_set_int (line, "layer", op->layer);
  if (detail != NULL)
    pod_result_set_string (line, "detail", detail);
  if (op->kind == POD_OP_COMPUTE)
    set_kernel (line, &g_array_index (program->kernels, PodKernel, op->kernel));
  else if (op->kind == POD_OP_COPY)
    {
      pod_result_set_string (line, "copy.to", op->stream == POD_STREAM_TO_HOST ? "host" : "device");
      pod_result_set_int (line, "copy.bytes", (int64_t) op->bytes);
    }
  else
    set_collective (line, program, op);
  add_dependencies (pod_result_get_array (line, "after"), program, op);
  add_buffers (pod_result_get_array (line, "buffers"), program, op);
  write_line (output, line);
}

static void
write_block (PodOutput *output, const PodProgram *program, guint index)
{
  const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, index);
  JsonObject *line = json_object_new ();
  JsonObject *streams = json_object_new ();

  pod_result_set_string (line, "record", "block");
  pod_result_set_int (line, "block", index);
  pod_result_set_string (line, "name", block->name);
  pod_result_set_int (line, "ops", block->n_ops);
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    if (block->n_of_stream[s] > 0)
      json_object_set_int_member (streams, pod_stream_names[s], block->n_of_stream[s]);
  json_object_set_object_member (line, "streams", streams);
  write_line (output, line);
  for (uint32_t i = 0; i < block->n_ops; i++)
    write_op (output, program, index, i, &g_array_index (program->ops, PodOp, block->first_op + i));
}

bool
pod_report_program (const PodProgram *program, const char *file, GError **error)
{
  g_return_val_if_fail (program != NULL && file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  g_autoptr (PodOutput) output = pod_output_open (file, false, error);

  if (output == NULL)
    return false;
  write_head (output, program);
  for (guint c = 0; c < program->classes->len; c++)
    write_class (output, program, c);
  for (guint b = 0; b < program->blocks->len; b++)
    write_block (output, program, b);
  return pod_output_close (g_steal_pointer (&output), error);
}
