#include "engine/runner.h"

#include <stdlib.h>

#include <check.h>

/* A stream begins when so many tasks of another have ended as it waits for, however many these are: what is counted down on the way is kept
 * in few bits (runner-private.h), and a stream that waits for more is tried on the way. Two ranks, so that each has counts of its own. */

enum
{
  N_TASKS = 5000,
  N_RANKS = 2,
  KIND = 3,
  FIRST_OP_OF_WAITER = 7000,
};

typedef struct
{
  int64_t began_ps[N_RANKS][2]; /* the waiting streams' tasks */
  unsigned n_ended;
} Seen;

static void
started (void *context, const PodTaskEvent *event, int64_t now_ps, int64_t end_ps)
{
  Seen *seen = context;

  ck_assert_int_gt (end_ps, now_ps);
  if (event->op >= FIRST_OP_OF_WAITER)
    {
      ck_assert_uint_eq (event->released_by, 0);
      seen->began_ps[event->rank][event->op - FIRST_OP_OF_WAITER] = now_ps;
    }
}

static void
ended (void *context, const PodTaskEvent *event, int64_t now_ps)
{
  (void) event;
  (void) now_ps;
  ((Seen *) context)->n_ended++;
}

/* Stream 0 has tasks of a picosecond each; streams 1 and 2 have one each, for so many of these. */
static PodTaskGraph *
graph_new (const int32_t *counts, const PodStep *step)
{
  PodTaskGraph *graph = pod_task_graph_new (3);
  PodBlock block = { .first_task = { 0, N_TASKS, N_TASKS + 1 }, .n_tasks = { N_TASKS, 1, 1 } };
  const PodClassProgram program = { .n_steps = 1, .steps = step };

  for (uint32_t i = 0; i < N_TASKS; i++)
    {
      const PodTask task = { .duration_ps = 1, .op = i, .like = i };

      g_array_append_val (graph->tasks, task);
    }
  for (uint32_t i = 0; i < 2; i++)
    {
      const PodTask task = { .duration_ps = 1, .op = FIRST_OP_OF_WAITER + i, .like = N_TASKS + i, .first_dep = i, .n_deps = 1 };
      const PodTaskDep dep = { .stream = 0, .count = counts[i] };

      g_array_append_val (graph->tasks, task);
      g_array_append_val (graph->deps, dep);
    }
  g_array_append_val (graph->blocks, block);
  g_array_append_val (graph->classes, program);
  pod_task_graph_seal (graph);
  return graph;
}

START_TEST (test_waits_of_any_length)
{
  static const int32_t counts[][2] = { { 1, 2 }, { 2046, 2047 }, { 2048, 2047 }, { 4094, 2049 }, { 4095, 4096 }, { 3, N_TASKS }, { N_TASKS - 1, N_TASKS } };
  const PodStep step = { .block = 0, .microbatch = -1 };
  const uint32_t class_of_rank[N_RANKS] = { 0 };
  Seen seen = { .n_ended = 0 };
  const PodObserver observer = { .context = &seen, .started = started, .ended = ended };
  g_autoptr (PodTaskGraph) graph = graph_new (counts[_i], &step);
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (PodRunner) runner = pod_runner_new (queue, KIND, graph, N_RANKS, class_of_rank, &observer);
  PodEvent event;

  for (uint32_t rank = 0; rank < N_RANKS; rank++)
    pod_runner_begin (runner, rank);
  while (pod_event_queue_pop (queue, &event))
    pod_runner_handle (runner, &event);
  ck_assert_uint_eq (pod_runner_n_unfinished (runner), 0);
  ck_assert_uint_eq (seen.n_ended, N_RANKS * (N_TASKS + 2));
  for (uint32_t rank = 0; rank < N_RANKS; rank++)
    for (unsigned i = 0; i < 2; i++)
      ck_assert_int_eq (seen.began_ps[rank][i], counts[_i][i]);
}
END_TEST

/* A task whose end is moved ends then, and not when its end was before. */
START_TEST (test_an_end_that_moves)
{
  static const int32_t counts[] = { 1, 2 };
  const PodStep step = { .block = 0, .microbatch = -1 };
  const uint32_t class_of_rank[N_RANKS] = { 0 };
  Seen seen = { .n_ended = 0 };
  const PodObserver observer = { .context = &seen, .started = started, .ended = ended };
  g_autoptr (PodTaskGraph) graph = graph_new (counts, &step);
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (PodRunner) runner = pod_runner_new (queue, KIND, graph, N_RANKS, class_of_rank, &observer);
  PodEvent event;

  for (uint32_t rank = 0; rank < N_RANKS; rank++)
    pod_runner_begin (runner, rank);
  pod_runner_retime (runner, 1, 0, 100);
  while (pod_event_queue_pop (queue, &event))
    pod_runner_handle (runner, &event);
  ck_assert_uint_eq (pod_runner_n_unfinished (runner), 0);
  for (unsigned i = 0; i < 2; i++)
    {
      ck_assert_int_eq (seen.began_ps[0][i], counts[i]);
      ck_assert_int_eq (seen.began_ps[1][i], 99 + counts[i]);
    }
}
END_TEST

static Suite *
runner_suite (void)
{
  Suite *suite = suite_create ("runner");
  TCase *tests = tcase_create ("runner");

  tcase_add_loop_test (tests, test_waits_of_any_length, 0, 7);
  tcase_add_test (tests, test_an_end_that_moves);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (runner_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
