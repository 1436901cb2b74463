/* Pipeline schedules by themselves: slots run as soon as their rank and their inputs allow, transfers cost nothing. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "parallel/schedule.h"

typedef struct
{
  double forward;
  double input;
  double weight;
  double pair; /* a forward and a backward at once; 0 = one after the other */
} Costs;

typedef struct
{
  double makespan;  /* from the first start to the last end */
  double span;      /* the most that a rank takes from its own first start to its own end: what a step costs when steps overlap */
  double work;      /* of one rank */
  uint32_t most_in_flight; /* forwards without their weight gradients, of any rank, in parts */
} Outcome;

static double *
end_of (double *ends, const PodSchedule *s, uint32_t rank, uint32_t chunk, unsigned what, uint32_t microbatch)
{
  return &ends[(((size_t) rank * s->n_chunks + chunk) * 3 + what) * s->n_microbatches + microbatch];
}

/* End of what a slot needs of another rank; -1 not there yet. */
static double
ready_at (double *ends, const PodSchedule *s, uint32_t rank, const PodSlot *slot)
{
  uint32_t r;
  uint32_t c;

  if (slot->kind == POD_SLOT_WEIGHT)
    return 0;
  if (slot->kind != POD_SLOT_FORWARD)
    return pod_schedule_next (s, rank, slot->chunk, &r, &c) ? *end_of (ends, s, r, c, 1, slot->microbatch) : 0;
  for (r = 0; r < s->n_ranks; r++) /* who hands on to this one */
    for (c = 0; c < s->n_chunks; c++)
      {
        uint32_t to_rank;
        uint32_t to_chunk;

        if (pod_schedule_next (s, r, c, &to_rank, &to_chunk) && to_rank == rank && to_chunk == slot->chunk)
          return *end_of (ends, s, r, c, 0, slot->microbatch);
      }
  return 0;
}

static double
cost_of (const Costs *costs, const PodSchedule *s, const PodSlot *slot)
{
  const double share = 1.0 / (s->is_two_way ? 1 : s->n_chunks);

  switch (slot->kind)
    {
    case POD_SLOT_FORWARD:
      return costs->forward * share;
    case POD_SLOT_INPUT:
      return costs->input * share;
    case POD_SLOT_WEIGHT:
      return costs->weight * share;
    default:
      return (costs->input + costs->weight) * share;
    }
}

static Outcome
play (const PodSchedule *s, const Costs *costs)
{
  const size_t n = (size_t) s->n_ranks * s->n_chunks * 3 * s->n_microbatches;
  g_autofree double *ends = g_new (double, n);
  g_autofree double *clock = g_new0 (double, s->n_ranks);
  g_autofree double *begin = g_new (double, s->n_ranks);
  g_autofree uint32_t *at = g_new0 (uint32_t, s->n_ranks);
  g_autofree uint32_t *in_flight = g_new0 (uint32_t, s->n_ranks);
  Outcome out = { 0 };
  bool is_moving = true;

  for (size_t i = 0; i < n; i++)
    ends[i] = -1;
  for (uint32_t r = 0; r < s->n_ranks; r++)
    begin[r] = -1;
  while (is_moving)
    {
      is_moving = false;
      for (uint32_t r = 0; r < s->n_ranks; r++)
        {
          const GArray *slots = g_ptr_array_index (s->slots, r);

          while (at[r] < slots->len)
            {
              const PodSlot *slot = &g_array_index (slots, PodSlot, at[r]);
              const PodSlot *partner = slot->is_paired && costs->pair > 0 ? slot + 1 : NULL;
              double ready = ready_at (ends, s, r, slot);
              double also = partner != NULL ? ready_at (ends, s, r, partner) : 0;
              double cost = partner != NULL ? costs->pair / (s->is_two_way ? 1 : s->n_chunks) : cost_of (costs, s, slot);

              if (ready < 0 || also < 0)
                break;
              clock[r] = MAX (MAX (clock[r], ready), also);
              if (begin[r] < 0)
                begin[r] = clock[r];
              clock[r] += cost;
              if (r == 0)
                out.work += cost;
              for (; slot != NULL; slot = partner, partner = NULL)
                {
                  at[r]++;
                  if (slot->kind == POD_SLOT_FORWARD)
                    *end_of (ends, s, r, slot->chunk, 0, slot->microbatch) = clock[r];
                  if (slot->kind == POD_SLOT_INPUT || slot->kind == POD_SLOT_BACKWARD)
                    *end_of (ends, s, r, slot->chunk, 1, slot->microbatch) = clock[r];
                  in_flight[r] += slot->kind == POD_SLOT_FORWARD;
                  in_flight[r] -= slot->kind == POD_SLOT_WEIGHT || slot->kind == POD_SLOT_BACKWARD;
                  out.most_in_flight = MAX (out.most_in_flight, in_flight[r]);
                }
              is_moving = true;
            }
        }
    }
  for (uint32_t r = 0; r < s->n_ranks; r++)
    {
      ck_assert_uint_eq (at[r], ((GArray *) g_ptr_array_index (s->slots, r))->len);
      ck_assert_uint_eq (in_flight[r], 0);
      out.makespan = MAX (out.makespan, clock[r]);
      out.span = MAX (out.span, clock[r] - begin[r]);
    }
  return out;
}

static const struct
{
  uint32_t p, v, m;
} sizes[] = { { 1, 2, 4 }, { 2, 2, 4 }, { 2, 3, 8 }, { 4, 2, 8 }, { 4, 2, 12 }, { 4, 5, 16 }, { 8, 2, 16 }, { 8, 4, 32 }, { 16, 2, 64 } };

static PodSchedule *
make (PodScheduleKind kind, int size)
{
  const bool is_looped = kind == POD_SCHEDULE_INTERLEAVED || kind == POD_SCHEDULE_BREADTH_FIRST;
  g_autoptr (GError) error = NULL;
  PodSchedule *s;

  if (kind == POD_SCHEDULE_DUALPIPE && sizes[size].p % 2 != 0)
    return NULL;
  s = pod_schedule_new (kind, sizes[size].p, is_looped ? sizes[size].v : 1, sizes[size].m, &error);
  ck_assert_msg (s != NULL, "%s: %s", pod_schedule_names[kind], error != NULL ? error->message : "");
  return s;
}

START_TEST (every_schedule_is_whole)
{
  for (PodScheduleKind kind = 0; kind < POD_SCHEDULE_FILE; kind++)
    {
      g_autoptr (PodSchedule) s = make (kind, _i);
      g_autoptr (GError) error = NULL;

      if (s != NULL)
        ck_assert_msg (pod_schedule_check (s, &error), "%s p=%u m=%u: %s", pod_schedule_names[kind], s->n_ranks, s->n_microbatches, error->message);
    }
}
END_TEST

/* Bubble of the busiest rank by the closed forms of schedule.h. */
static double
closed_form (PodScheduleKind kind, double p, double v, const Costs *c, double pair)
{
  const double b = c->input + c->weight;

  switch (kind)
    {
    case POD_SCHEDULE_1F1B:
    case POD_SCHEDULE_GPIPE:
      return (p - 1) * (c->forward + b);
    case POD_SCHEDULE_INTERLEAVED:
    case POD_SCHEDULE_BREADTH_FIRST:
      return (p - 1) * (c->forward + b) / v;
    case POD_SCHEDULE_ZB_H1:
      return (p - 1) * (c->forward + c->input - c->weight);
    case POD_SCHEDULE_ZB_H2:
      return (p - 1) * (c->forward + c->input - 2 * c->weight);
    case POD_SCHEDULE_ZB_V:
      return c->forward == c->weight && c->input == c->weight ? 0 : (p - 1) * (c->forward + b);
    case POD_SCHEDULE_DUALPIPE:
      return (p / 2 - 1) * (pair + b - 3 * c->weight);
    default:
      return (p - 1) * (pair + b - 3 * c->weight) / 2; /* a chunk is half of a rank's part */
    }
}

START_TEST (bubbles_are_the_closed_forms)
{
  static const Costs costs[] = { { 1, 1, 1, 3 }, { 6, 7, 5, 18 }, { 6, 7, 5, 14 } };

  for (PodScheduleKind kind = 0; kind < POD_SCHEDULE_FILE; kind++)
    for (unsigned k = 0; k < G_N_ELEMENTS (costs); k++)
      {
        g_autoptr (PodSchedule) s = make (kind, _i);
        const bool is_rolling = kind == POD_SCHEDULE_ZB_H2 || kind == POD_SCHEDULE_ZB_V;
        Outcome out;
        double bubble;
        /* What the papers give for schedules of V and two-way form is exact when F = I = W, else a bound */
        const bool is_bound = kind >= POD_SCHEDULE_ZB_V && k > 0;
        double expected;

        if (s == NULL)
          continue;
        out = play (s, &costs[k]);
        bubble = (is_rolling ? out.span : out.makespan) - out.work;
        expected = closed_form (kind, s->n_ranks, s->n_chunks, &costs[k], costs[k].pair);
        ck_assert_msg (is_bound ? bubble <= expected : bubble > expected - 1e-9 && bubble < expected + 1e-9, "%s p=%u v=%u m=%u costs %u: bubble %g, not %g",
                       pod_schedule_names[kind], s->n_ranks, s->n_chunks, s->n_microbatches, k, bubble, expected);
      }
}
END_TEST

/* Forwards whose weight gradients are still owed, in parts held by a rank: what activations cost (zb-v and dualpipe-v: half as large). */
START_TEST (as_many_are_in_flight)
{
  const Costs costs = { 1, 1, 1, 3 };

  for (PodScheduleKind kind = 0; kind < POD_SCHEDULE_FILE; kind++)
    {
      g_autoptr (PodSchedule) s = make (kind, _i);
      const uint32_t p = sizes[_i].p;
      const uint32_t m = sizes[_i].m;
      const uint32_t expected[] = {
        [POD_SCHEDULE_1F1B] = MIN (p, m),
        [POD_SCHEDULE_GPIPE] = m,
        [POD_SCHEDULE_INTERLEAVED] = m == p ? m * sizes[_i].v : MIN (2 * (p - 1) + (sizes[_i].v - 1) * p + 1, m * sizes[_i].v),
        [POD_SCHEDULE_BREADTH_FIRST] = m * sizes[_i].v,
        [POD_SCHEDULE_ZB_H1] = p,
        [POD_SCHEDULE_ZB_H2] = 2 * p - 1,
        [POD_SCHEDULE_ZB_V] = 2 * p,
        [POD_SCHEDULE_DUALPIPE] = p + 1,
        [POD_SCHEDULE_DUALPIPE_V] = 2 * p + 1,
      };

      if (s != NULL)
        ck_assert_msg (play (s, &costs).most_in_flight == expected[kind], "%s p=%u m=%u: %u in flight, not %u", pod_schedule_names[kind], p, m,
                       play (s, &costs).most_in_flight, expected[kind]);
    }
}
END_TEST

/* Schedules that are told, rank by rank. */
static const struct
{
  const char *text;
  const char *message; /* after the file name; NULL = right */
  uint32_t n_ranks, n_microbatches, n_chunks;
} files[] = {
  { "0F0,0F1,,0B0,0B1\n1F0,1B0,1F1,1B1\n", NULL, 2, 2, 1 },
  { "# interleaved\n0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1", NULL, 2, 2, 2 },
  { "0F0,3F0,3I0,0I0,3W0,0W0\n1F0, 2F0, 2B0, 1B0\n", NULL, 2, 1, 2 },
  { "0F0,0B0\n1B0,1F0\n", ": schedule: deadlock: rank 1 waits at 1B0 for 1F0 of rank 1", 2, 1, 1 },
  { "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", ": schedule: deadlock: rank 1 waits at 1F1 for 0F1 of rank 0, rank 0 waits at 0B0 for 1B0 of rank 1", 2, 2, 1 },
  { "0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n",
    ": schedule: deadlock: rank 1 wants the input of 1F1 after one that rank 0 sends later; transfers between two ranks keep their order", 2, 2, 1 },
  { "0F0,0B0\n1F0,1I0\n", ": schedule: rank 1 has no weight gradient (B or W) of microbatch 0 for part 1", 2, 1, 1 },
  { "0F0,0F0,0B0\n", ": schedule: 0F0 does again what an earlier slot of rank 0 does", 1, 1, 1 },
  { "0F0,0B0\n", ": 1 rows of slots, but pp=2 ranks", 2, 1, 1 },
  { "1F0,1B0\n0F0,0B0\n", ": part 1 stands on rank 0: parts go round the ranks (part % 2) or there and back (2 x 2 parts)", 2, 1, 1 },
  { "0F0,2F0,2B0,0B0\n1F0,1B0\n", ": 3 parts are not a multiple of pp=2, or more than 64 a rank", 2, 1, 1 },
  { "0F0,0X0\n", ":1: '0X0' is not a slot such as 0F3: part, kind (F, B, I or W), microbatch", 1, 1, 1 },
  { "0F0\n\n0F-1", ":3: '0F-1' is not a slot such as 0F3: part, kind (F, B, I or W), microbatch", 1, 1, 1 },
  { "0F0,0F3", ":1: '0F3': the step has microbatches 0 to 1", 1, 2, 1 },
};

START_TEST (file_is_read_or_refused)
{
  g_autofree char *file = NULL;
  g_autoptr (GError) error = NULL;
  int fd = g_file_open_tmp ("schedule-XXXXXX.csv", &file, NULL);
  g_autoptr (PodSchedule) s = NULL;

  ck_assert_int_ge (fd, 0);
  close (fd);
  ck_assert (g_file_set_contents (file, files[_i].text, -1, NULL));
  s = pod_schedule_load (file, files[_i].n_ranks, files[_i].n_microbatches, &error);
  unlink (file);
  ck_assert_msg ((s != NULL) == (files[_i].message == NULL), "%s: %s", files[_i].text, error != NULL ? error->message : "taken");
  if (s != NULL)
    ck_assert_uint_eq (s->n_chunks, files[_i].n_chunks);
  else
    ck_assert_str_eq (error->message + strlen (file), files[_i].message);
}
END_TEST

/* What a kind cannot do is refused with its numbers. */
static const struct
{
  PodScheduleKind kind;
  uint32_t p, v, m;
  const char *message;
} refusals[] = {
  { POD_SCHEDULE_INTERLEAVED, 4, 2, 10, "--schedule interleaved: 10 microbatches are not a multiple of pp=4: 10 % 4 = 2; nearest: 8 or 12" },
  { POD_SCHEDULE_INTERLEAVED, 4, 1, 8, "--schedule interleaved: vpp=1 leaves one part a stage: give the layout vpp=2 or more, or take 1f1b" },
  { POD_SCHEDULE_1F1B, 4, 2, 8, "--schedule 1f1b: vpp=2, but it gives each stage one part: take interleaved for vpp" },
  { POD_SCHEDULE_ZB_V, 4, 3, 8, "--schedule zb-v: vpp=3, but it gives each stage 2 parts: leave vpp out" },
  { POD_SCHEDULE_DUALPIPE, 3, 1, 8, "--schedule dualpipe: pp=3 and 8 microbatches must both be even: half of them enter at either end" },
  { POD_SCHEDULE_DUALPIPE, 4, 1, 6, "--schedule dualpipe: 6 microbatches are fewer than 2 x pp = 8" },
  { POD_SCHEDULE_DUALPIPE_V, 4, 1, 7, "--schedule dualpipe-v: 7 microbatches are fewer than 2 x pp = 8" },
};

START_TEST (misfit_is_refused)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodSchedule) s = pod_schedule_new (refusals[_i].kind, refusals[_i].p, refusals[_i].v, refusals[_i].m, &error);

  ck_assert (s == NULL);
  ck_assert_int_eq (error->code, POD_ERROR_INFEASIBLE);
  ck_assert_str_eq (error->message, refusals[_i].message);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("schedule");
  TCase *tcase = tcase_create ("schedule");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_add_loop_test (tcase, every_schedule_is_whole, 0, G_N_ELEMENTS (sizes));
  tcase_add_loop_test (tcase, bubbles_are_the_closed_forms, 0, G_N_ELEMENTS (sizes));
  tcase_add_loop_test (tcase, as_many_are_in_flight, 0, G_N_ELEMENTS (sizes));
  tcase_add_loop_test (tcase, file_is_read_or_refused, 0, G_N_ELEMENTS (files));
  tcase_add_loop_test (tcase, misfit_is_refused, 0, G_N_ELEMENTS (refusals));
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
