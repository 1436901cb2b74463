#include "exec/exec-private.h"

#include <string.h>

/* A lane's task that is there and has not ended. */
typedef struct
{
  int64_t arrive_ps;
  uint32_t released_by;
} Open;

struct PodRecorder
{
  PodTimeline *timeline;
  uint32_t *index_of;   /* (nullable) represented rank -> recorded index, UINT32_MAX not recorded; NULL: nobody is */
  Open *open;           /* lanes */
  uint32_t *last_span;  /* lanes */
  uint64_t n_left_out;
  const uint32_t *n_like; /* (nullable) NULL: 1 */
  const uint32_t *n_like_of_fold;
};

static const PodCategory category_of_phase[] = {
  [POD_PHASE_FORWARD] = POD_CATEGORY_FORWARD,
  [POD_PHASE_BACKWARD] = POD_CATEGORY_BACKWARD,
  [POD_PHASE_RECOMPUTE] = POD_CATEGORY_RECOMPUTE,
  [POD_PHASE_OPTIMIZER] = POD_CATEGORY_OPTIMIZER,
};

static void
add_ops (PodTimeline *timeline, const PodExecRequest *request)
{
  const PodProgram *program = request->program;

  for (guint i = 0; !request->is_recording_none && i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);
      g_autofree char *name = pod_op_name (op);
      g_autofree char *detail = pod_op_detail (op, op->has_detail ? &g_array_index (program->kernels, PodKernel, op->kernel) : NULL);
      PodTimelineOp out = { .name = g_string_chunk_insert_const (timeline->strings, name),
                            .detail = detail != NULL ? g_string_chunk_insert_const (timeline->strings, detail) : NULL,
                            .category = category_of_phase[op->phase],
                            .stream = op->stream,
                            .slot = op->slot,
                            .chunk = op->chunk,
                            .layer = op->layer };

      if (op->kind == POD_OP_COMPUTE)
        {
          const PodKernel *kernel = &g_array_index (program->kernels, PodKernel, op->kernel);

          out.flops = kernel->flops;
          out.bytes = kernel->read_bytes + kernel->write_bytes;
        }
      else if (op->kind == POD_OP_COPY)
        {
          out.axis = pod_axis_name (POD_AXIS_HOST);
          out.category = POD_CATEGORY_COMM;
          out.bytes = (double) op->bytes;
        }
      else
        {
          const PodCommunicator *comm = g_ptr_array_index (program->communicators, op->comm);

          out.axis = pod_axis_name (comm->axis);
          out.category = op->collective == POD_SEND ? POD_CATEGORY_P2P : POD_CATEGORY_COMM;
          out.bytes = (double) op->bytes;
        }
      g_array_append_val (timeline->ops, out);
    }
}

static void
add_rank (PodRecorder *recorder, const PodExecRequest *request, const PodFold *fold, uint32_t index)
{
  const PodProgramClass *class = g_ptr_array_index (request->program->classes, fold->class_of[index]);
  PodTimelineRank rank = { .rank = pod_fold_rank (fold, index), .n_like_it = pod_fold_n_like (fold, index) };

  if (recorder->index_of[index] != UINT32_MAX)
    return;
  recorder->index_of[index] = recorder->timeline->ranks->len;
  rank.name = rank.n_like_it == 1 ? g_strdup_printf ("rank %u (%s)", rank.rank, class->name)
                                       : g_strdup_printf ("rank %u (%s, %u ranks alike)", rank.rank, class->name, rank.n_like_it);
  g_array_append_val (recorder->timeline->ranks, rank);
}

PodRecorder *
pod_recorder_new (const PodExecRequest *request, const PodFold *fold)
{
  PodRecorder *recorder = g_new0 (PodRecorder, 1);
  size_t n_lanes;

  recorder->timeline = pod_timeline_new (POD_N_STREAMS, pod_stream_names);
  recorder->index_of = request->is_recording_none ? NULL : g_new (uint32_t, fold->n_ranks);
  recorder->n_like = recorder->n_like_of_fold = fold->n_like;
  if (!request->is_recording_none)
    {
      memset (recorder->index_of, 0xff, fold->n_ranks * sizeof *recorder->index_of);
      add_ops (recorder->timeline, request);
    }
  if (request->is_recording_none)
    ;
  else if (request->record != NULL)
    for (uint32_t i = 0; i < request->n_record; i++)
      add_rank (recorder, request, fold, fold->index_of_rank == NULL ? request->record[i] : fold->index_of_rank[request->record[i]]);
  else if (request->is_recording_all)
    for (uint32_t i = 0; i < fold->n_ranks; i++)
      add_rank (recorder, request, fold, i);
  else
    for (guint c = 0; c < request->program->classes->len; c++)
      for (uint32_t i = 0; i < fold->n_ranks; i++)
        if (fold->class_of[i] == c)
          {
            add_rank (recorder, request, fold, i);
            break;
          }
  n_lanes = (size_t) recorder->timeline->ranks->len * POD_N_STREAMS;
  recorder->open = g_new0 (Open, n_lanes + 1);
  recorder->last_span = g_new (uint32_t, n_lanes + 1);
  memset (recorder->last_span, 0xff, (n_lanes + 1) * sizeof *recorder->last_span);
  g_ptr_array_add (recorder->timeline->series_names, g_strdup ("memory bytes"));
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    g_ptr_array_add (recorder->timeline->series_names, g_strdup_printf ("%s link bytes/s", pod_stream_names[s]));
  return recorder;
}

void
pod_recorder_free (PodRecorder *recorder)
{
  if (recorder == NULL)
    return;
  pod_timeline_free (recorder->timeline);
  g_free (recorder->index_of);
  g_free (recorder->open);
  g_free (recorder->last_span);
  g_free (recorder);
}

bool
pod_recorder_has (const PodRecorder *recorder, uint32_t rank)
{
  return recorder->index_of != NULL && recorder->index_of[rank] != UINT32_MAX;
}

void
pod_recorder_twins (PodRecorder *recorder, const uint32_t *n_like)
{
  recorder->n_like = n_like != NULL ? n_like : recorder->n_like_of_fold;
}

static uint32_t
lane_of (const PodRecorder *recorder, uint32_t rank, uint8_t stream)
{
  return recorder->index_of[rank] * POD_N_STREAMS + stream;
}

void
pod_recorder_arrive (PodRecorder *recorder, const PodTaskEvent *event, int64_t now_ps)
{
  if (!pod_recorder_has (recorder, event->rank))
    return;
  recorder->open[lane_of (recorder, event->rank, event->stream)]
      = (Open){ .arrive_ps = now_ps, .released_by = recorder->last_span[lane_of (recorder, event->rank, event->released_by)] };
}

int64_t
pod_recorder_arrived (const PodRecorder *recorder, const PodTaskEvent *event)
{
  return pod_recorder_has (recorder, event->rank) ? recorder->open[lane_of (recorder, event->rank, event->stream)].arrive_ps : 0;
}

uint32_t
pod_recorder_end (PodRecorder *recorder, const PodTaskEvent *event, int64_t start_ps, int64_t end_ps)
{
  PodSpan span;
  uint32_t lane;

  if (!pod_recorder_has (recorder, event->rank))
    {
      recorder->n_left_out += recorder->n_like == NULL ? 1 : recorder->n_like[event->rank];
      return POD_NO_SPAN;
    }
  recorder->n_left_out += recorder->n_like == NULL ? 0 : recorder->n_like[event->rank] - 1;
  lane = lane_of (recorder, event->rank, event->stream);
  span = (PodSpan){ .arrive_ps = recorder->open[lane].arrive_ps,
                    .start_ps = start_ps,
                    .end_ps = end_ps,
                    .op = event->op,
                    .lane = lane,
                    .released_by = recorder->open[lane].released_by,
                    .microbatch = event->microbatch };
  g_array_append_val (recorder->timeline->spans, span);
  recorder->last_span[lane] = recorder->timeline->spans->len - 1;
  return recorder->last_span[lane];
}

void
pod_recorder_flow (PodRecorder *recorder, uint32_t from_span, uint32_t to_span)
{
  PodFlow flow = { .from_span = from_span, .to_span = to_span };

  if (from_span != POD_NO_SPAN && to_span != POD_NO_SPAN)
    g_array_append_val (recorder->timeline->flows, flow);
}

static void
add_sample (PodRecorder *recorder, uint32_t rank, uint32_t series, int64_t at_ps, double value)
{
  PodCounterSample sample = { .at_ps = at_ps, .rank_index = recorder->index_of[rank], .series = series, .value = value };

  g_array_append_val (recorder->timeline->counters, sample);
}

void
pod_recorder_memory (PodRecorder *recorder, uint32_t rank, int64_t now_ps, double bytes)
{
  if (pod_recorder_has (recorder, rank))
    add_sample (recorder, rank, 0, now_ps, bytes);
}

void
pod_recorder_rate (PodRecorder *recorder, const PodTaskEvent *event, int64_t start_ps, int64_t end_ps, double bytes_per_s)
{
  if (!pod_recorder_has (recorder, event->rank))
    return;
  add_sample (recorder, event->rank, 1U + event->stream, start_ps, bytes_per_s);
  add_sample (recorder, event->rank, 1U + event->stream, end_ps, 0);
}

PodTimeline *
pod_recorder_steal (PodRecorder *recorder, int64_t end_ps)
{
  recorder->timeline->end_ps = end_ps;
  recorder->timeline->n_left_out = recorder->n_left_out;
  return g_steal_pointer (&recorder->timeline);
}
