#include "engine/runner-private.h"

/* Stretches of a rank that are not run, for they are like some that were. */

uint32_t
pod_runner_step (const PodRunner *runner, uint32_t rank)
{
  return runner->streams[(size_t) rank * runner->n_streams].step;
}

bool
pod_runner_is_live (const PodRunner *runner, const PodEvent *event)
{
  const uint8_t s = (uint8_t) event->tag;

  return tag_of (runner, event->index, s) == event->tag;
}

/* A stream stands by how many of its tasks have ended; at which step its head is follows from that, and may be far ahead. */
void
pod_runner_save (const PodRunner *runner, uint32_t rank, uint32_t from, GArray *out)
{
  const uint32_t *base = program_of (runner, rank)->base + (size_t) from * runner->n_streams;
  int64_t state[2 * MAX_STREAMS];

  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      const Stream *stream = &runner->streams[(size_t) rank * runner->n_streams + s];

      state[2 * s] = (int64_t) stream->n_ended - base[s];
      state[2 * s + 1] = stream->flags & (IS_RUNNING | WAITING);
    }
  g_array_append_vals (out, state, 2 * runner->n_streams);
}

static uint32_t
tasks_between (const PodRunner *runner, const PodClassProgram *program, unsigned s, uint32_t from, uint32_t to)
{
  return program->base[(size_t) to * runner->n_streams + s] - program->base[(size_t) from * runner->n_streams + s];
}

/* The step whose task the stream's head would be with @n_ended ended: not after @from. */
static uint32_t
step_back (const PodRunner *runner, const PodClassProgram *program, unsigned s, uint32_t from, uint32_t n_ended)
{
  while (from > 0 && program->base[(size_t) from * runner->n_streams + s] > n_ended)
    from--;
  return from;
}

/* The steps that streams met on the stretch. Those without a task in it wait for a step far ahead, or are done. */
static bool
find_window (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t *out_first, uint32_t *out_last)
{
  const PodClassProgram *program = program_of (runner, rank);

  *out_first = from;
  *out_last = to;
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      const Stream *stream = &runner->streams[(size_t) rank * runner->n_streams + s];
      const uint32_t n_tasks = tasks_between (runner, program, s, from, to);

      if (n_tasks == 0)
        continue;
      if (stream->n_ended < n_tasks)
        return false;
      *out_first = MIN (*out_first, step_back (runner, program, s, MIN (stream->step, program->n_steps), stream->n_ended - n_tasks));
      *out_last = MAX (*out_last, stream->step);
    }
  return *out_last < program->n_steps;
}

uint32_t
pod_runner_n_repeats (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t reach, uint32_t most)
{
  const PodClassProgram *program = program_of (runner, rank);
  uint32_t first, last, same;
  uint64_t enough;

  if (to <= from || !find_window (runner, rank, from, to, &first, &last))
    return 0;
  last = MAX (last, MIN (reach, program->n_steps - 1));
  enough = last + 1 + (uint64_t) most * (to - from);
  for (same = first; same < enough && same + (to - from) < program->n_steps && program->like[same] == program->like[same + (to - from)]; same++)
    ;
  return same > last ? (same - 1 - last) / (to - from) : 0;
}

/* The stream that stands where @stream does, @n stretches later. */
static Stream
moved_stream (const PodRunner *runner, const PodClassProgram *program, const Stream *stream, unsigned s, uint32_t from, uint32_t to, uint32_t n)
{
  const uint32_t n_tasks = tasks_between (runner, program, s, from, to);
  Stream moved = *stream;

  if (n_tasks == 0)
    return moved;
  moved.n_ended += n * n_tasks;
  moved.step = step_back (runner, program, s, MIN (stream->step + n * (to - from), program->n_steps), moved.n_ended);
  pod_runner_find_head (runner, program, &moved, s);
  return moved;
}

bool
pod_runner_can_skip (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n)
{
  const PodClassProgram *program = program_of (runner, rank);
  const Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  Stream moved[MAX_STREAMS];
  uint32_t needs;

  for (unsigned s = 0; s < runner->n_streams; s++)
    moved[s] = moved_stream (runner, program, &streams[s], s, from, to, n);
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      if (streams[s].head == NO_TASK || moved[s].head == NO_TASK)
        {
          if (streams[s].head != moved[s].head)
            return false;
          continue;
        }
      if ((streams[s].flags & IS_RUNNING) != 0
              ? task_at (runner, streams[s].head)->like != task_at (runner, moved[s].head)->like
              : waits_for (runner, program, streams, streams[s].step, task_at (runner, streams[s].head), &needs)
                    != waits_for (runner, program, moved, moved[s].step, task_at (runner, moved[s].head), &needs))
        return false;
    }
  return true;
}

void
pod_runner_wait_anew (const PodRunner *runner, uint32_t rank)
{
  const PodClassProgram *program = program_of (runner, rank);
  Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  uint32_t needs;

  for (unsigned s = 0; s < runner->n_streams; s++)
    streams[s].flags &= IS_RUNNING;
  for (unsigned s = 0; s < runner->n_streams; s++)
    if (streams[s].head != NO_TASK && (streams[s].flags & IS_RUNNING) == 0)
      {
        const int waits = waits_for (runner, program, streams, streams[s].step, task_at (runner, streams[s].head), &needs);

        if (waits >= 0)
          wait_on (&streams[waits], s, needs);
      }
}

void
pod_runner_skip (PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n)
{
  const PodClassProgram *program = program_of (runner, rank);
  Stream *streams = runner->streams + (size_t) rank * runner->n_streams;

  for (unsigned s = 0; s < runner->n_streams; s++)
    streams[s] = moved_stream (runner, program, &streams[s], s, from, to, n);
  pod_runner_wait_anew (runner, rank);
}
