#include "engine/event-queue.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

START_TEST (test_empty)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  PodEvent event;

  ck_assert (!pod_event_queue_pop (queue, &event));
  ck_assert_int_eq (pod_event_queue_now (queue), 0);
  ck_assert_uint_eq (pod_event_queue_n_pending (queue), 0);
  ck_assert_uint_eq (pod_event_queue_n_popped (queue), 0);
  ck_assert (pod_event_queue_check (queue));
  pod_event_queue_free (NULL);
}
END_TEST

START_TEST (test_what_was_pushed_comes_back)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  PodEvent event;

  pod_event_queue_push (queue, 5, 7, 1, UINT32_MAX, UINT64_MAX);
  ck_assert_uint_eq (pod_event_queue_n_pending (queue), 1);
  ck_assert (pod_event_queue_pop (queue, &event));
  ck_assert_int_eq (event.at_ps, 5);
  ck_assert_uint_eq (event.order >> 56, 7);
  ck_assert_uint_eq (event.kind, 1);
  ck_assert_uint_eq (event.index, UINT32_MAX);
  ck_assert_uint_eq (event.tag, UINT64_MAX);
  ck_assert_int_eq (pod_event_queue_now (queue), 5);
  ck_assert_uint_eq (pod_event_queue_n_popped (queue), 1);
}
END_TEST

/* Time first, then priority, then the order of pushing. */
START_TEST (test_ties)
{
  static const struct
  {
    int64_t at_ps;
    uint8_t priority;
    uint32_t rank; /* where it must come out */
  } pushed[] = {
    { 10, 2, 5 },        { 10, 0, 2 },        { 10, 255, 7 }, { 10, 2, 6 }, { 10, 0, 3 },
    { INT64_MAX, 0, 8 }, { INT64_MAX, 0, 9 }, { 0, 255, 1 },  { 10, 1, 4 }, { 0, 254, 0 },
  };
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  PodEvent event;

  for (size_t i = 0; i < G_N_ELEMENTS (pushed); i++)
    pod_event_queue_push (queue, pushed[i].at_ps, pushed[i].priority, 0, pushed[i].rank, 0);
  for (uint32_t rank = 0; rank < G_N_ELEMENTS (pushed); rank++)
    {
      ck_assert (pod_event_queue_pop (queue, &event));
      ck_assert_uint_eq (event.index, rank);
    }
  ck_assert (!pod_event_queue_pop (queue, &event));
}
END_TEST

START_TEST (test_equal_times_keep_their_order)
{
  enum
  {
    N = 5000,
  };
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  PodEvent event;

  for (uint32_t i = 0; i < N; i++)
    pod_event_queue_push (queue, 42, 0, 0, i, 0);
  for (uint32_t i = 0; i < N; i++)
    {
      ck_assert (pod_event_queue_pop (queue, &event));
      ck_assert_uint_eq (event.index, i);
    }
}
END_TEST

static int
compare_events (const void *a, const void *b)
{
  const PodEvent *x = a, *y = b;

  if (x->at_ps != y->at_ps)
    return x->at_ps < y->at_ps ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* Every size through several levels of the heap against a sorted array; few times, so that ties
 * abound. */
START_TEST (test_every_size_is_sorted)
{
  uint64_t random = 1;

  for (size_t n = 0; n <= 200; n++)
    {
      g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
      g_autofree PodEvent *expected = g_new (PodEvent, n + 1);
      PodEvent event;

      for (size_t i = 0; i < n; i++)
        {
          PodEvent *pushed = &expected[i];
          pushed->at_ps = (int64_t) (next_random (&random) % (n / 4 + 1));
          pushed->order = (next_random (&random) % 3) << 56 | i;
          pod_event_queue_push (queue, pushed->at_ps, (uint8_t) (pushed->order >> 56), 0,
                                (uint32_t) i, 0);
          ck_assert (pod_event_queue_check (queue));
        }
      qsort (expected, n, sizeof *expected, compare_events);
      for (size_t i = 0; i < n; i++)
        {
          ck_assert (pod_event_queue_pop (queue, &event));
          ck_assert_int_eq (event.at_ps, expected[i].at_ps);
          ck_assert_uint_eq (event.order, expected[i].order);
          ck_assert (pod_event_queue_check (queue));
        }
      ck_assert (!pod_event_queue_pop (queue, &event));
    }
}
END_TEST

/* Pushes and pops in random order against a list that is searched whole. */
START_TEST (test_random_against_search)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (GArray) pending = g_array_new (FALSE, FALSE, sizeof (PodEvent));
  uint64_t random = 2;
  uint64_t n_pushed = 0, n_popped = 0;
  PodEvent event;

  for (unsigned step = 0; step < 12000; step++)
    {
      /* Grows and shrinks in turns */
      if (next_random (&random) % 16 < (step / 1500 % 2 == 0 ? 9U : 7U))
        {
          PodEvent pushed = {
            .at_ps = pod_event_queue_now (queue) + (int64_t) (next_random (&random) % 50),
            .order = (next_random (&random) % 4) << 56 | n_pushed++,
          };
          pod_event_queue_push (queue, pushed.at_ps, (uint8_t) (pushed.order >> 56), 3, 4,
                                pushed.order);
          g_array_append_val (pending, pushed);
        }
      else if (pod_event_queue_pop (queue, &event))
        {
          guint earliest = 0;
          for (guint i = 1; i < pending->len; i++)
            if (compare_events (&g_array_index (pending, PodEvent, i),
                                &g_array_index (pending, PodEvent, earliest))
                < 0)
              earliest = i;
          const PodEvent *expected = &g_array_index (pending, PodEvent, earliest);
          ck_assert_int_eq (event.at_ps, expected->at_ps);
          ck_assert_uint_eq (event.order, expected->order);
          ck_assert_uint_eq (event.tag, event.order);
          ck_assert_int_eq (pod_event_queue_now (queue), event.at_ps);
          g_array_remove_index_fast (pending, earliest);
          n_popped++;
        }
      ck_assert_uint_eq (pod_event_queue_n_pending (queue), pending->len);
      ck_assert_uint_eq (pod_event_queue_n_popped (queue), n_popped);
      ck_assert (pod_event_queue_check (queue));
    }
  ck_assert_uint_gt (n_popped, 4000);
}
END_TEST

/* Delays of every scale, ties and gaps, with many pending and few: all that was pushed comes back
 * once, in order. No delay is 0, so that what comes is later than all that came before. */
START_TEST (test_ladder)
{
  static const int64_t scales_ps[] = { 1, 50, 3000, 1000000, INT64_C (1) << 40 };
  const uint32_t n_pending = (uint32_t[]){ 1, 60, 70, 1000, 40000 }[_i];
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  uint64_t random = 3, n_popped = 0;
  PodEvent before = { .at_ps = -1 }, event;

  for (uint32_t i = 0; i < n_pending; i++)
    pod_event_queue_push (queue, 1 + (int64_t) (next_random (&random) % 100), 0, 0, 0, 0);
  while (pod_event_queue_pop (queue, &event))
    {
      const int64_t scale_ps = scales_ps[next_random (&random) % G_N_ELEMENTS (scales_ps)];
      const uint64_t bits = next_random (&random);

      ck_assert (event.at_ps > before.at_ps
                 || (event.at_ps == before.at_ps && event.order > before.order));
      before = event;
      n_popped++;
      /* In bursts, so that few are pending between them */
      for (unsigned k = 0; n_popped < 200000 && k < (n_popped / 5000 % 2 == 0 ? 2 : bits % 2); k++)
        if (pod_event_queue_n_pending (queue) < 2 * n_pending + 1)
          pod_event_queue_push (queue, event.at_ps + 1 + (int64_t) (bits >> 8) % scale_ps,
                                (uint8_t) (bits % 3), 0, 0, 0);
      if (n_popped % 997 == 0)
        ck_assert (pod_event_queue_check (queue));
    }
  ck_assert_uint_eq (pod_event_queue_n_pending (queue), 0);
  ck_assert_uint_eq (pod_event_queue_n_popped (queue), n_popped);
}
END_TEST

/* What an instant's events push at that instant still comes before anything later. */
START_TEST (test_same_instant_push_while_popping)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  PodEvent event;

  pod_event_queue_push (queue, 10, 0, 0, 0, 0);
  pod_event_queue_push (queue, 11, 0, 0, 9, 0);
  pod_event_queue_push (queue, 10, 5, 0, 2, 0);
  ck_assert (pod_event_queue_pop (queue, &event));
  pod_event_queue_push (queue, 10, 1, 0, 1, 0);
  pod_event_queue_push (queue, 10, 5, 0, 3, 0);
  for (uint32_t rank = 1; rank <= 3; rank++)
    {
      ck_assert (pod_event_queue_pop (queue, &event));
      ck_assert_int_eq (event.at_ps, 10);
      ck_assert_uint_eq (event.index, rank);
    }
  ck_assert (pod_event_queue_pop (queue, &event));
  ck_assert_uint_eq (event.index, 9);
}
END_TEST

/* In a process of its own by hand: Check's fork mode may be off. */
/* The clock goes back, what is pushed there comes before all else, and nothing of what is later does. */
START_TEST (test_clock_goes_back)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  PodEvent event;

  for (uint32_t i = 0; i < 1000; i++)
    pod_event_queue_push (queue, 1000 + 10 * i, 0, 0, i, 0);
  for (uint32_t i = 0; i < 500; i++)
    {
      ck_assert (pod_event_queue_pop (queue, &event));
      ck_assert_uint_eq (event.index, i);
      ck_assert (!pod_event_queue_pop_before (queue, event.at_ps + 10, &event));
      pod_event_queue_set_now (queue, event.at_ps - 500);
      ck_assert (pod_event_queue_push (queue, event.at_ps - 100, 0, 1, 0, 0) < pod_event_queue_push (queue, event.at_ps - 100, 0, 1, 1, 0));
      pod_event_queue_push (queue, event.at_ps - 400, 0, 1, 2, 0);
      for (uint32_t k = 0; k < 3; k++)
        {
          ck_assert (pod_event_queue_pop_before (queue, 1000 + 10 * i, &event));
          ck_assert_uint_eq (event.kind, 1);
          ck_assert_uint_eq (event.index, (k + 2) % 3);
        }
      ck_assert (!pod_event_queue_pop_before (queue, 1000 + 10 * i, &event));
      pod_event_queue_set_now (queue, 1000 + 10 * i);
      ck_assert (pod_event_queue_check (queue));
    }
  ck_assert_uint_eq (pod_event_queue_n_pending (queue), 500);
}
END_TEST

START_TEST (test_the_past_is_refused)
{
  int status = 0;
  PodEvent event;
  pid_t child = fork ();

  ck_assert_int_ge (child, 0);
  if (child == 0)
    {
      g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
      int null = open ("/dev/null", O_WRONLY);
      dup2 (null, STDERR_FILENO);
      dup2 (null, STDOUT_FILENO);
      pod_event_queue_push (queue, 10, 0, 0, 0, 0);
      pod_event_queue_pop (queue, &event);
      pod_event_queue_push (queue, 10, 0, 0, 0, 0);
      pod_event_queue_push (queue, 9, 0, 0, 0, 0);
      _exit (EXIT_SUCCESS);
    }
  ck_assert_int_eq (waitpid (child, &status, 0), child);
  ck_assert (WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT);
}
END_TEST

static Suite *
event_queue_suite (void)
{
  Suite *suite = suite_create ("event-queue");
  TCase *tests = tcase_create ("event-queue");

  tcase_add_test (tests, test_empty);
  tcase_add_test (tests, test_what_was_pushed_comes_back);
  tcase_add_test (tests, test_ties);
  tcase_add_test (tests, test_equal_times_keep_their_order);
  tcase_add_test (tests, test_every_size_is_sorted);
  tcase_add_test (tests, test_random_against_search);
  tcase_add_loop_test (tests, test_ladder, 0, 5);
  tcase_add_test (tests, test_same_instant_push_while_popping);
  tcase_add_test (tests, test_clock_goes_back);
  tcase_add_test (tests, test_the_past_is_refused);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (event_queue_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
