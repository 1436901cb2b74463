/* Properties of a whole training step, over machines of every family:
 *   - a folded run and a run of every rank give the same result, to the byte;
 *   - on every rank the breakdown adds up to the step in integer picoseconds;
 *   - more work, or less bandwidth, never takes less time; twice the microbatches take between one and two times as long;
 *   - ideal <= calibrated; the lower bound is one.
 * Nothing here is compared with a stored number. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scenario/scenario.h"

/* 128 devices each. */
static const struct
{
  const char *topology;
  const char *layout;
  const char *schedule; /* NULL = the layout's own */
} machines[] = {
  { "tpu-v5p:4x4x8", "fsdp=32 tp=4", NULL },          /* 3-D torus, all wrapped */
  { "tpu-v5p:4x4x8t", "fsdp=32 tp=4", NULL },         /* twisted */
  { "tpu-v5p:2x8x8,unchecked", "dp=4 fsdp=8 tp=4", NULL },      /* no whole cubes: a mesh */
  { "tpu-v4:4x4x4*2", "dp=2 fsdp=16 tp=4", NULL },    /* two slices over DCN */
  { "tpu-v5p:4x4x4*2", "pp=2 fsdp=16 tp=4", NULL },   /* pipeline over DCN */
  { "tpu-v5e:8x16", "fsdp=32 tp=4", NULL },           /* one wrapped axis, one line */
  { "tpu-v6e:8x16", "dp=8 pp=4 tp=4", NULL },
  { "tpu-v3:8x8", "fsdp=32 tp=4", NULL },             /* two devices a chip */
  { "tpu-v7x:4x4x4", "fsdp=16 tp=8", NULL },
  { "h100:8x16", "dp=4 pp=4 tp=8", NULL },            /* rails under one leaf layer */
  { "h100:8x16", "fsdp=128", NULL },
  { "h100:8x16,rails=1", "dp=16 tp=8", NULL },        /* plain leaves, partly filled */
  { "a100:8x16,oversub=2", "dp=8 fsdp=2 tp=8", NULL },
  { "gb200:64x2", "dp=2 tp=8 pp=8", NULL },
  { "mi300x:8x16", "fsdp=16 tp=8", NULL },            /* full meshes */
  { "mi250x:4x16", "fsdp=32 tp=4", NULL },
  { "h100:8x16", "dp=4 pp=4 tp=8", "gpipe" },
  { "h100:8x16", "dp=4 pp=4 tp=8 vpp=2", "interleaved" },
  { "h100:8x16", "fsdp=4 pp=4 tp=8 vpp=2", "breadth-first" },
  { "h100:8x16", "dp=4 pp=4 tp=8", "zb-h1" },
  { "tpu-v5p:4x4x8", "fsdp=8 pp=4 tp=4", "zb-h2" },
  { "gb200:64x2", "dp=4 pp=4 tp=8", "zb-v" },
  { "h100:8x16", "dp=2 fsdp=2 pp=4 tp=8", "dualpipe" },
  { "tpu-v5p:4x4x8", "dp=8 pp=4 tp=4", "dualpipe-v" },
  { "tpu-v5p:4x4x8", "fsdp=8 tp=4 cp=4", NULL },      /* keys and values gathered over cp */
  { "tpu-v5e:8x16", "dp=4 cp=4 pp=2 tp=4", NULL },
  { "h100:8x16", "fsdp=2 cp=8 tp=4 pp=2", NULL },     /* and round a ring, within nodes and across them */
  { "gb200:64x2", "dp=4 cp=16 tp=2", NULL },
};

static const PodRunRequest no_request = { 0 };

/* Runs podsim's scenario from "name=value" words ("layout=fsdp=4 tp=2"), NULL-terminated. */
static PodRun *
run_words (const char *first, va_list args)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  PodRun *run;

  for (const char *word = first; word != NULL; word = va_arg (args, const char *))
    {
      g_auto (GStrv) pair = g_strsplit (word, "=", 2);

      ck_assert_msg (pod_scenario_set (scenario, pair[0], pair[1], &error), "%s: %s", word, error != NULL ? error->message : "");
    }
  run = pod_scenario_run (scenario, &no_request, &error);
  ck_assert_msg (run != NULL, "%s: %s", first, error != NULL ? error->message : "");
  return run;
}

static PodRun *
run_job (const char *first, ...)
{
  va_list args;
  PodRun *run;

  va_start (args, first);
  run = run_words (first, args);
  va_end (args);
  return run;
}

static char *
result_text (PodRun *run)
{
  g_autoptr (JsonNode) root = json_node_alloc ();

  json_node_init_object (root, run->result);
  return pod_json_to_text (root);
}

static int64_t
sum_of (const PodBreakdown *b)
{
  int64_t sum = b->compute_ps + b->bubble_ps + b->idle_ps;

  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    sum += b->exposed_ps[a];
  return sum;
}

static PodRun *
run_machine (int i, const char *fold, const char *fidelity)
{
  g_autofree char *topology = g_strdup_printf ("topology=%s", machines[i].topology);
  g_autofree char *layout = g_strdup_printf ("layout=%s", machines[i].layout);
  g_autofree char *folding = g_strdup_printf ("fold=%s", fold);
  g_autofree char *level = g_strdup_printf ("fidelity=%s", fidelity);

  g_autofree char *schedule = g_strdup_printf ("schedule=%s", machines[i].schedule);

  return run_job (topology, layout, folding, level, "model=llama3-8b", "seq-len=2048", "global-batch=256", "layers=8", machines[i].schedule != NULL ? schedule : NULL, NULL);
}

START_TEST (test_folded_is_unfolded)
{
  g_autoptr (PodRun) folded = run_machine (_i, "auto", "calibrated");
  g_autoptr (PodRun) unfolded = run_machine (_i, "off", "calibrated");
  g_autofree char *a = result_text (folded);
  g_autofree char *b = result_text (unfolded);

  ck_assert_msg (folded->exec->time_ps == unfolded->exec->time_ps, "%s %s: folded %ld ps, unfolded %ld ps", machines[_i].topology, machines[_i].layout,
                 (long) folded->exec->time_ps, (long) unfolded->exec->time_ps);
  ck_assert_msg (strcmp (a, b) == 0, "%s: results differ", machines[_i].topology);
  ck_assert_uint_eq (unfolded->exec->n_represented, 128);
}
END_TEST

/* Colours of ranks that nothing but dp's double tree tells apart: until they come to it, one runs for all of a stage. */
static const char *const twins[][2] = { { "layout=dp=32 pp=2 tp=8", "schedule=1f1b" },
                                        { "layout=dp=32 pp=2 tp=8", "network=analytic" },
                                        { "layout=dp=32 pp=2 tp=8 vpp=2", "schedule=interleaved" },
                                        { "layout=dp=32 pp=2 tp=4 cp=2", "schedule=gpipe" },
                                        { "layout=dp=32 pp=2 tp=8", "zero=1" } };

START_TEST (test_twins_are_unfolded)
{
  g_autoptr (PodRun) folded
      = run_job ("topology=h100:8x64", twins[_i][0], twins[_i][1], "model=llama3-8b", "seq-len=2048", "global-batch=128", "layers=4", NULL);
  g_autoptr (PodRun) unfolded
      = run_job ("topology=h100:8x64", twins[_i][0], twins[_i][1], "model=llama3-8b", "seq-len=2048", "global-batch=128", "layers=4", "fold=off", NULL);
  g_autofree char *a = result_text (folded);
  g_autofree char *b = result_text (unfolded);

  ck_assert_msg (folded->exec->time_ps == unfolded->exec->time_ps, "%s %s: folded %ld ps, unfolded %ld ps", twins[_i][0], twins[_i][1], (long) folded->exec->time_ps,
                 (long) unfolded->exec->time_ps);
  ck_assert_msg (strcmp (a, b) == 0, "%s %s: results differ", twins[_i][0], twins[_i][1]);
  ck_assert_uint_lt (folded->exec->n_represented, unfolded->exec->n_represented);
}
END_TEST

START_TEST (test_breakdown_adds_up_on_every_rank)
{
  g_autoptr (PodRun) run = run_machine (_i, "off", "calibrated");

  for (uint32_t r = 0; r < run->exec->n_represented; r++)
    {
      const PodBreakdown *b = &run->exec->breakdowns[r];

      ck_assert_msg (sum_of (b) == run->exec->time_ps, "%s rank %u: %ld of %ld ps", machines[_i].topology, r, (long) sum_of (b), (long) run->exec->time_ps);
      ck_assert (b->idle_ps >= 0 && b->bubble_ps >= 0 && b->compute_ps > 0);
    }
}
END_TEST

START_TEST (test_ideal_and_bound_are_below)
{
  g_autoptr (PodRun) calibrated = run_machine (_i, "auto", "calibrated");
  g_autoptr (PodRun) ideal = run_machine (_i, "auto", "ideal");

  ck_assert_msg (ideal->exec->time_ps <= calibrated->exec->time_ps, "%s: ideal %ld, calibrated %ld", machines[_i].topology, (long) ideal->exec->time_ps,
                 (long) calibrated->exec->time_ps);
  ck_assert (ideal->exec->lower_bound_ps <= ideal->exec->time_ps);
  ck_assert (calibrated->exec->lower_bound_ps <= calibrated->exec->time_ps);
}
END_TEST

START_TEST (test_timeline_is_sound)
{
  g_autoptr (PodRun) run = run_machine (_i, "auto", "calibrated");
  g_autoptr (GError) error = NULL;

  ck_assert_msg (pod_timeline_check (run->exec->timeline, &error), "%s: %s", machines[_i].topology, error != NULL ? error->message : "");
}
END_TEST

/* Doubling a quantity moves the step the way it must. */
static const struct
{
  const char *what;
  const char *base;
  const char *twice;
  double at_least; /* time ratio */
  double at_most;
} doublings[] = {
  { "layers", "layers=8", "layers=16", 1.5, 2.0 },
  { "microbatches", "global-batch=64", "global-batch=128", 1.3, 2.0 },
  { "hidden", "hidden=4096", "hidden=8192", 1.3, 4.5 },
  { "link bandwidth", "set=chip.ici_bandwidth=100GB/s", "set=chip.ici_bandwidth=200GB/s", 0.45, 1.0 },
  { "HBM bandwidth", "set=chip.hbm_bandwidth=2TB/s", "set=chip.hbm_bandwidth=4TB/s", 0.45, 1.0 },
  { "peak", "set=chip.peak_bf16=459TFLOP/s", "set=chip.peak_bf16=918TFLOP/s", 0.45, 1.0 },
};

START_TEST (test_doubling)
{
  g_autoptr (PodRun) base = run_job ("topology=tpu-v5p:4x4x4", "layout=dp=2 fsdp=4 tp=4 pp=2", "model=llama3-8b", "seq-len=4096", "layers=8", "global-batch=64", doublings[_i].base, NULL);
  g_autoptr (PodRun) twice = run_job ("topology=tpu-v5p:4x4x4", "layout=dp=2 fsdp=4 tp=4 pp=2", "model=llama3-8b", "seq-len=4096", "layers=8", "global-batch=64", doublings[_i].twice, NULL);
  double ratio = (double) twice->exec->time_ps / (double) base->exec->time_ps;

  ck_assert_msg (ratio >= doublings[_i].at_least && ratio <= doublings[_i].at_most, "twice the %s: %g times as long", doublings[_i].what, ratio);
}
END_TEST

/* With equal stages and sends that cost nothing, bubble over the whole is that of the schedules' papers (schedule.h): all matmuls of the
 * block make F = I = W. The book's fidelity prices only matmuls; a link of 1e21 GB/s makes sends free. Gradient reduction is absent
 * (dp = 1), but for the copies of dualpipe, which cost nothing here. */
static const struct
{
  const char *schedule;
  unsigned p, v, m;
  double bubble; /* in forwards of a whole stage; the work is 3 m */
} bubbles[] = {
  { "1f1b", 2, 1, 2, 3 },           { "1f1b", 4, 1, 4, 9 },          { "1f1b", 4, 1, 8, 9 },        { "1f1b", 4, 1, 16, 9 },    { "1f1b", 8, 1, 8, 21 },
  { "gpipe", 4, 1, 8, 9 },          { "gpipe", 8, 1, 16, 21 },       { "interleaved", 4, 2, 8, 4.5 }, { "interleaved", 4, 4, 16, 2.25 },
  { "breadth-first", 4, 2, 8, 4.5 }, { "breadth-first", 2, 4, 8, .75 }, { "zb-h1", 4, 1, 8, 3 },     { "zb-h1", 8, 1, 16, 7 },   { "zb-h2", 4, 1, 8, 0 },
  { "zb-h2", 8, 1, 16, 0 },         { "zb-v", 4, 1, 8, 0 },          { "zb-v", 8, 1, 16, 0 },
};

START_TEST (test_bubble)
{
  const unsigned p = bubbles[_i].p;
  g_autofree char *layout = g_strdup_printf ("layout=pp=%u vpp=%u", p, bubbles[_i].v);
  g_autofree char *topology = g_strdup_printf ("topology=tpu-v5p:%ux1x1,unchecked", p);
  g_autofree char *batch = g_strdup_printf ("global-batch=%u", bubbles[_i].m);
  g_autofree char *schedule = g_strdup_printf ("schedule=%s", bubbles[_i].schedule);
  g_autoptr (PodRun) run = run_job (topology, layout, batch, schedule, "model=mlp-block", "layers=16", "seq-len=8192", "fidelity=book",
                                    "set=chip.ici_bandwidth=1e21GB/s", "set=chip.ici_latency=0s", NULL);
  double whole = (double) run->exec->time_ps;
  double bubble = (whole - (double) run->exec->breakdown.compute_ps) / whole;
  double expected = bubbles[_i].bubble / (bubbles[_i].bubble + 3.0 * bubbles[_i].m);

  ck_assert_msg (bubble > expected - 1e-6 && bubble < expected + 1e-6, "%s p=%u m=%u: %g, expected %g", bubbles[_i].schedule, p, bubbles[_i].m, bubble, expected);
}
END_TEST

/* DualPipe runs a forward and a backward together: at most the bubble of its paper, (p/2-1)(FB+B-3W) and (p-1)(FB+B-3W)/2 for its half. */
START_TEST (test_dualpipe_bubble)
{
  static const struct { const char *schedule; unsigned p, m; double bubble; } cases[] = {
    { "dualpipe", 2, 4, 0 }, { "dualpipe", 4, 16, 2 }, { "dualpipe", 8, 16, 6 }, { "dualpipe-v", 2, 4, 1 }, { "dualpipe-v", 4, 16, 3 }, { "dualpipe-v", 8, 32, 7 } };
  g_autofree char *layout = g_strdup_printf ("layout=pp=%u", cases[_i].p);
  g_autofree char *topology = g_strdup_printf ("topology=tpu-v5p:%ux1x1,unchecked", cases[_i].p);
  g_autofree char *batch = g_strdup_printf ("global-batch=%u", cases[_i].m);
  g_autofree char *schedule = g_strdup_printf ("schedule=%s", cases[_i].schedule);
  g_autoptr (PodRun) run = run_job (topology, layout, batch, schedule, "model=mlp-block", "layers=16", "seq-len=8192", "fidelity=book",
                                    "set=chip.ici_bandwidth=1e21GB/s", "set=chip.ici_latency=0s", NULL);
  double bubble = (double) (run->exec->time_ps - run->exec->breakdown.compute_ps) / (double) run->exec->breakdown.compute_ps * 3 * cases[_i].m;

  ck_assert_msg (bubble <= cases[_i].bubble + 1e-4, "%s p=%u m=%u: %g forwards of a stage, expected %g at most", cases[_i].schedule, cases[_i].p, cases[_i].m, bubble, cases[_i].bubble);
}
END_TEST

/* Whatever a step allocates it frees: each rank ends with the memory it began with, and never has less. */
static void
check_memory (const PodRun *run, const char *what)
{
  const PodTimeline *timeline = run->exec->timeline;

  for (guint r = 0; r < timeline->ranks->len; r++)
    {
      const PodProgramClass *class = g_ptr_array_index (run->program->classes, run->program->class_of_rank[g_array_index (timeline->ranks, PodTimelineRank, r).rank]);
      double held = 0;
      double last = -1;
      double least = INFINITY;

      for (guint l = 0; l < run->program->labels->len; l++)
        held += (double) (int64_t) class->static_bytes[l];
      for (guint i = 0; i < timeline->counters->len; i++)
        {
          const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

          if (sample->rank_index != r || sample->series != 0)
            continue;
          last = sample->value;
          least = MIN (least, sample->value);
        }
      ck_assert_msg (last == held && least >= held, "%s rank %u: ends with %.0f of %.0f bytes, least %.0f", what, r, last, held, least);
    }
}

START_TEST (test_memory_comes_back)
{
  g_autoptr (PodRun) run = run_machine (_i, "auto", "calibrated");

  check_memory (run, machines[_i].topology);
}
END_TEST

/* Every way to keep less, with gradients at once and apart: memory comes back, and a rank holds no more than with all kept. */
static const struct
{
  const char *recompute;
  const char *schedule;
  const char *model;
} recomputes[] = {
  { "selective", "1f1b", "llama3-8b" }, { "full", "1f1b", "llama3-8b" },   { "full", "zb-h1", "llama3-8b" },
  { "full:2", "1f1b", "llama3-8b" },    { "full:3", "zb-v", "llama3-8b" }, { "block:1", "1f1b", "llama3-8b" },
  { "every:2", "zb-h1", "llama3-8b" },  { "offload", "1f1b", "llama3-8b" }, { "offload", "zb-h1", "llama3-8b" },
  { "save:qkv,attention", "1f1b", "llama3-8b" }, { "save:residual+offload:ffn-in,qkv", "1f1b", "llama3-8b" },
  { "offload:attention", "gpipe", "llama3-8b" }, { "full", "dualpipe", "mixtral-8x7b" }, { "save:attention", "1f1b", "mixtral-8x7b" },
  { "full:2", "1f1b", "gpt3-175b" },    { "save:qkv", "zb-h1", "deepseek-v3" },
};

START_TEST (test_recompute)
{
  g_autofree char *recompute = g_strdup_printf ("recompute=%s", recomputes[_i].recompute);
  g_autofree char *schedule = g_strdup_printf ("schedule=%s", recomputes[_i].schedule);
  g_autofree char *model = g_strdup_printf ("model=%s", recomputes[_i].model);
  g_autoptr (PodRun) all = run_job ("topology=h100:8x4", "layout=fsdp=4 pp=2 tp=4", "seq-len=2048", "global-batch=32", "layers=12", model, schedule, NULL);
  g_autoptr (PodRun) folded = run_job ("topology=h100:8x4", "layout=fsdp=4 pp=2 tp=4", "seq-len=2048", "global-batch=32", "layers=12", model, schedule, recompute, NULL);
  g_autoptr (PodRun) unfolded = run_job ("topology=h100:8x4", "layout=fsdp=4 pp=2 tp=4", "seq-len=2048", "global-batch=32", "layers=12", "fold=off", model, schedule, recompute, NULL);
  g_autofree char *a = result_text (folded);
  g_autofree char *b = result_text (unfolded);

  check_memory (folded, recomputes[_i].recompute);
  ck_assert_msg (strcmp (a, b) == 0, "%s: folded and unfolded differ", recomputes[_i].recompute);
  ck_assert_msg (folded->exec->peak_bytes <= all->exec->peak_bytes, "%s: %g bytes, with all kept %g", recomputes[_i].recompute, folded->exec->peak_bytes, all->exec->peak_bytes);
}
END_TEST

/* Peak activations in flight of stage i: min(m, p - i) microbatches (the first stage holds most). */
START_TEST (test_1f1b_memory)
{
  g_autoptr (PodRun) run = run_job ("topology=tpu-v5p:4x1x1", "layout=pp=4", "global-batch=8", "model=mlp-block", "layers=4", "seq-len=8192", "fidelity=book", NULL);
  const double *peaks = (const double *) run->exec->stage_peaks->data;
  double step = peaks[0] - peaks[1];

  ck_assert (step > 0);
  ck_assert_msg (peaks[1] - peaks[2] == step && peaks[2] - peaks[3] == step, "%g %g %g %g", peaks[0], peaks[1], peaks[2], peaks[3]);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("step");
  TCase *machine = tcase_create ("machines");
  TCase *other = tcase_create ("properties");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (machine, 120);
  tcase_set_timeout (other, 120);
  tcase_add_loop_test (machine, test_folded_is_unfolded, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (machine, test_twins_are_unfolded, 0, G_N_ELEMENTS (twins));
  tcase_add_loop_test (machine, test_breakdown_adds_up_on_every_rank, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (machine, test_ideal_and_bound_are_below, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (machine, test_memory_comes_back, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (machine, test_timeline_is_sound, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (other, test_doubling, 0, G_N_ELEMENTS (doublings));
  tcase_add_loop_test (other, test_recompute, 0, G_N_ELEMENTS (recomputes));
  tcase_add_loop_test (other, test_bubble, 0, G_N_ELEMENTS (bubbles));
  tcase_add_loop_test (other, test_dualpipe_bubble, 0, 6);
  tcase_add_test (other, test_1f1b_memory);
  suite_add_tcase (suite, machine);
  suite_add_tcase (suite, other);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
