#include "engine/runner-private.h"

/* Places: where a rank stands, to be put there again at another step. By lane, the tasks that have ended counted from the rank's step and
 * whether one runs; then which blocks the steps around it are kin of, for nothing beyond these is begun. */

enum
{
  BEFORE = 1, /* steps around the rank's */
  AHEAD = POD_PLACE_AHEAD,
  N_AROUND = BEFORE + 1 + AHEAD,
};

/* Of streams that nothing of an island's own makes go on here: their heads are outward, or beyond the steps around. */
#define OUTWARD INT64_MIN
#define FAR     INT64_MAX

void
pod_runner_keep_due (PodRunner *runner)
{
  runner->due = g_new0 (PodDue, (size_t) runner->n_ranks * runner->n_streams);
}

guint
pod_runner_n_place (const PodRunner *runner)
{
  return runner->n_streams + N_AROUND;
}

uint32_t
pod_runner_n_ended (const PodRunner *runner, uint32_t rank)
{
  return runner->streams[(size_t) rank * runner->n_streams].n_ended;
}

static const PodBlock *
block_at (const PodRunner *runner, const PodClassProgram *program, uint32_t step)
{
  return &g_array_index (runner->graph->blocks, PodBlock, program->steps[step].block);
}

/* -1 where there is no step */
static int64_t
kin_around (const PodRunner *runner, const PodClassProgram *program, uint32_t step, int distance)
{
  const int64_t at = (int64_t) step + distance;

  return at >= 0 && at < program->n_steps ? (int64_t) block_at (runner, program, (uint32_t) at)->kin : -1;
}

/* Tasks of @s that have ended when all steps around @step are done. */
static uint32_t
ended_around (const PodRunner *runner, const PodClassProgram *program, uint32_t step, unsigned s)
{
  return program->base[(size_t) MIN (step + AHEAD + 1, program->n_steps) * runner->n_streams + s];
}

static uint32_t
ended_at (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place, unsigned s)
{
  const PodClassProgram *program = program_of (runner, rank);

  if (place[s] == OUTWARD)
    return runner->streams[(size_t) rank * runner->n_streams + s].n_ended;
  if (place[s] == FAR)
    return ended_around (runner, program, step, s);
  return (uint32_t) ((int64_t) program->base[(size_t) step * runner->n_streams + s] + (place[s] >> 1));
}

/* What tasks of the step at @at wait for that is outward has ended, as far as streams are there. */
static bool
is_fed (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place, uint32_t at)
{
  const PodClassProgram *program = program_of (runner, rank);
  const PodBlock *block = block_at (runner, program, at);
  const uint32_t *base = program->base + (size_t) at * runner->n_streams;

  for (uint32_t i = block->first_outward; i < block->first_outward + block->n_outward; i++)
    {
      const PodOutwardDep *dep = &g_array_index (runner->graph->outward, PodOutwardDep, i);

      if (place[dep->lane] == OUTWARD || place[dep->lane] == FAR || ended_at (runner, rank, step, place, dep->lane) < base[dep->lane])
        continue;
      if ((int64_t) ended_at (runner, rank, step, place, dep->on) < (int64_t) base[dep->on] + dep->count)
        return false;
    }
  return true;
}

static bool
are_fed (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place)
{
  const uint32_t first = step > BEFORE ? step - BEFORE : 0;
  const uint32_t n_steps = program_of (runner, rank)->n_steps;

  for (uint32_t at = first; at <= step + AHEAD && at < n_steps; at++)
    if (!is_fed (runner, rank, step, place, at))
      return false;
  return true;
}

bool
pod_runner_keep (const PodRunner *runner, uint32_t rank, int64_t *out)
{
  const PodClassProgram *program = program_of (runner, rank);
  const Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  const uint32_t step = streams[0].step;

  if (streams[0].head == NO_TASK)
    return false;
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      const Stream *stream = &streams[s];
      const bool is_running = (stream->flags & IS_RUNNING) != 0;

      if (stream->head != NO_TASK && task_at (runner, stream->head)->is_outward)
        out[s] = OUTWARD;
      else if (stream->head == NO_TASK || stream->step > step + AHEAD)
        {
          out[s] = FAR;
          if (is_running || stream->n_ended != ended_around (runner, program, step, s))
            return false;
        }
      else if (stream->step + BEFORE < step)
        return false;
      else
        out[s] = 2 * ((int64_t) stream->n_ended - program->base[(size_t) step * runner->n_streams + s]) + is_running;
    }
  for (int i = 0; i < N_AROUND; i++)
    out[runner->n_streams + (unsigned) i] = kin_around (runner, program, step, i - (int) BEFORE);
  return are_fed (runner, rank, step, out);
}

bool
pod_runner_fits (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place)
{
  const PodClassProgram *program = program_of (runner, rank);

  for (int i = 0; i < N_AROUND; i++)
    if (place[runner->n_streams + (unsigned) i] != kin_around (runner, program, step, i - (int) BEFORE))
      return false;
  return true;
}

bool
pod_runner_is_fed (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place)
{
  return are_fed (runner, rank, step, place);
}

uint32_t
pod_runner_n_alike (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place, uint32_t most)
{
  const PodClassProgram *program = program_of (runner, rank);
  const int64_t *around = place + runner->n_streams;
  uint32_t n = 0;

  for (unsigned i = 1; i < N_AROUND; i++)
    if (around[i] != around[0])
      return 0;
  if (around[0] < 0 || block_at (runner, program, step)->n_outward > 0)
    return 0;
  while (n < most && kin_around (runner, program, step + n + 1, AHEAD) == around[0])
    n++;
  return n;
}

bool
pod_runner_turns_outward (const PodRunner *runner, const int64_t *before, const int64_t *place)
{
  for (unsigned s = 0; s < runner->n_streams; s++)
    if (place[s] == OUTWARD && before[s] != OUTWARD)
      return true;
  return false;
}

void
pod_runner_list_limits (const PodRunner *runner, uint32_t rank, GArray *out)
{
  const PodClassProgram *program = program_of (runner, rank);
  const Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  uint32_t needs;

  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      const Stream *stream = &streams[s];
      PodLaneLimit limit = { .rank = rank };
      int waits;

      if (stream->head == NO_TASK || (stream->flags & IS_RUNNING) != 0
          || (!task_at (runner, stream->head)->is_outward && stream->step <= streams[0].step + AHEAD))
        continue;
      waits = waits_for (runner, program, streams, stream->step, task_at (runner, stream->head), &needs);
      g_assert (waits >= 0);
      limit.lane = (uint8_t) waits;
      limit.needs = needs;
      limit.waiting = (uint8_t) s;
      g_array_append_val (out, limit);
    }
}

/* The first step from @step on with a task of @s: n_steps when there is none. O(log steps) */
static uint32_t
next_step (const PodRunner *runner, const PodClassProgram *program, uint32_t step, unsigned s)
{
  const uint32_t n_ended = program->base[(size_t) MIN (step, program->n_steps) * runner->n_streams + s];
  uint32_t last = program->n_steps;

  while (step < last)
    {
      const uint32_t middle = step + (last - step) / 2;

      if (program->base[((size_t) middle + 1) * runner->n_streams + s] > n_ended)
        last = middle;
      else
        step = middle + 1;
    }
  return step;
}

/* What the stream's next task, beyond the steps around, waits for in @place. False when it waits for nothing. */
static bool
find_limit (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place, unsigned s, PodLaneLimit *out)
{
  const PodClassProgram *program = program_of (runner, rank);
  const uint32_t at = next_step (runner, program, step + AHEAD + 1, s);
  const PodTask *task;

  *out = (PodLaneLimit){ .rank = rank, .lane = (uint8_t) s, .waiting = (uint8_t) s, .needs = UINT32_MAX };
  if (at >= program->n_steps)
    return true;
  task = task_at (runner, block_at (runner, program, at)->first_task[s]);
  for (uint32_t d = task->first_dep; d < task->first_dep + task->n_deps; d++)
    {
      const PodTaskDep *dep = &g_array_index (runner->graph->deps, PodTaskDep, d);
      const int64_t needs = (int64_t) program->base[(size_t) at * runner->n_streams + dep->stream] + dep->count;

      if ((int64_t) ended_at (runner, rank, step, place, dep->stream) >= needs)
        continue;
      out->lane = dep->stream;
      out->needs = (uint32_t) needs;
      return true;
    }
  return false;
}

bool
pod_runner_list_new_limits (const PodRunner *runner, uint32_t rank, const int64_t *before, uint32_t step, const int64_t *place, GArray *out)
{
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      PodLaneLimit limit;

      if (place[s] != FAR || before[s] == FAR)
        continue;
      if (!find_limit (runner, rank, step, place, s, &limit))
        return false;
      g_array_append_val (out, limit);
    }
  return true;
}

bool
pod_runner_is_within (const PodRunner *runner, const PodLaneLimit *limit, uint32_t step, const int64_t *place)
{
  const bool is_waiting = place[limit->waiting] == FAR || place[limit->waiting] == OUTWARD;

  return !is_waiting || ended_at (runner, limit->rank, step, place, limit->lane) < limit->needs;
}

void
pod_runner_put (PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place)
{
  const PodClassProgram *program = program_of (runner, rank);
  Stream *streams = runner->streams + (size_t) rank * runner->n_streams;

  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      Stream *stream = &streams[s];
      const bool was_done = stream->head == NO_TASK;

      if (place[s] == OUTWARD)
        continue;
      make_stale (runner, rank, s);
      stream->flags = place[s] != FAR && (place[s] & 1) != 0 ? IS_RUNNING : 0;
      if (stream->n_ended == ended_at (runner, rank, step, place, s))
        continue;
      stream->n_ended = ended_at (runner, rank, step, place, s);
      stream->step = MAX (stream->step, step > BEFORE ? step - BEFORE : 0);
      pod_runner_find_head (runner, program, stream, s);
      runner->n_unfinished -= !was_done && stream->head == NO_TASK;
    }
  pod_runner_wait_anew (runner, rank);
}

void
pod_runner_pause (PodRunner *runner, uint32_t rank)
{
  Stream *streams = runner->streams + (size_t) rank * runner->n_streams;

  for (unsigned s = 0; s < runner->n_streams; s++)
    if (streams[s].head != NO_TASK && !task_at (runner, streams[s].head)->is_outward)
      make_stale (runner, rank, s);
}

static bool
is_timed (const PodRunner *runner, const Stream *stream)
{
  return (stream->flags & IS_RUNNING) != 0 && task_at (runner, stream->head)->duration_ps != POD_JOINT;
}

void
pod_runner_resume (PodRunner *runner, uint32_t rank, unsigned lane, int64_t end_ps)
{
  const size_t i = (size_t) rank * runner->n_streams + lane;

  g_assert (is_timed (runner, &runner->streams[i]));
  runner->due[i].at_ps = end_ps;
  runner->due[i].order = pod_event_queue_push (runner->queue, end_ps, 1, runner->event_kind, rank, tag_of (runner, rank, lane));
}

bool
pod_runner_due (const PodRunner *runner, uint32_t rank, unsigned lane, int64_t *out_ps, uint64_t *out_order)
{
  const size_t i = (size_t) rank * runner->n_streams + lane;

  if (!is_timed (runner, &runner->streams[i]))
    return false;
  *out_ps = runner->due[i].at_ps;
  *out_order = runner->due[i].order;
  return true;
}
