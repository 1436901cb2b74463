#include "base/error.h"
#include "base/units.h"
#include "exec/exec-private.h"

/* What a stream that cannot go on waits for. */
static void
append_wait (GString *text, const PodExecRequest *request, const PodFold *fold, const PodTaskEvent *head, int waits_for)
{
  const PodOp *op = &g_array_index (request->program->ops, PodOp, head->op);
  g_autofree char *name = pod_op_name (op);

  g_string_append_printf (text, "%srank %u, %s: '%s'", text->len > 0 ? "; " : "", pod_fold_rank (fold, head->rank), pod_stream_names[head->stream], name);
  if (head->microbatch >= 0)
    g_string_append_printf (text, " of microbatch %d", head->microbatch);
  if (waits_for >= 0)
    g_string_append_printf (text, " waits for its %s stream", pod_stream_names[waits_for]);
  else if (op->kind == POD_OP_COLLECTIVE)
    {
      const PodCommunicator *comm = g_ptr_array_index (request->program->communicators, op->comm);

      g_string_append_printf (text, " waits for its peers of %s", comm->name);
    }
}

void
pod_exec_report_deadlock (const PodExecRequest *request, const PodFold *fold, const PodRunner *runner, int64_t now_ps, GError **error)
{
  GString *text = g_string_new (NULL);
  g_autofree char *when = pod_format_seconds ((double) now_ps / 1e12);
  unsigned n_listed = 0;
  uint64_t n_stuck = 0;

  for (uint32_t rank = 0; rank < fold->n_ranks; rank++)
    for (uint8_t s = 0; s < POD_N_STREAMS; s++)
      {
        PodTaskEvent head;
        int waits_for;

        if (!pod_runner_head (runner, rank, s, &head, &waits_for))
          continue;
        n_stuck++;
        if (n_listed++ < 16)
          append_wait (text, request, fold, &head, waits_for);
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "deadlock at %s: %" G_GUINT64_FORMAT " streams cannot go on: %s%s", when, n_stuck, text->str, n_stuck > 16 ? "; …" : "");
  g_string_free (text, TRUE);
}
