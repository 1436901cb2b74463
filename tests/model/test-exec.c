#include <math.h>
#include <stdlib.h>

#include <check.h>

#include "exec/exec.h"
#include "parallel/builder-private.h"

/* Programs written by hand, run by the executor. */

static PodCommunicator *
communicator (const char *name, PodAxis axis, uint32_t first, uint32_t n, uint32_t n_ranks)
{
  PodCommunicator *comm = g_new0 (PodCommunicator, 1);

  comm->name = g_strdup (name);
  comm->axis = axis;
  comm->n_groups = 1;
  comm->group_size = n;
  comm->members = g_new (uint32_t, n);
  comm->devices = g_new (uint32_t, n);
  comm->n_spanned = n_ranks;
  comm->group_of_rank = g_new (uint32_t, n_ranks);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    comm->group_of_rank[rank] = rank >= first && rank < first + n ? 0 : UINT32_MAX;
  for (uint32_t i = 0; i < n; i++)
    comm->members[i] = comm->devices[i] = first + i;
  return comm;
}

static void
add_class (PodProgram *program, const char *name, uint32_t block)
{
  PodProgramClass *class = g_new0 (PodProgramClass, 1);
  PodOpStep step = { .block = block };

  class->name = g_strdup (name);
  class->steps = g_array_new (FALSE, FALSE, sizeof (PodOpStep));
  g_array_append_val (class->steps, step);
  g_ptr_array_add (program->classes, class);
}

/* Of 8 ranks the last 4 all-reduce among themselves, then all 8 gather. */
static PodProgram *
late_half (uint64_t bytes)
{
  PodProgram *program = pod_program_new (8);
  PodBuilder builder;
  uint32_t world, half, block, reduce, gather;

  pod_builder_init (&builder, program);
  world = pod_builder_add_communicator (&builder, communicator ("world", POD_AXIS_DP, 0, 8, 8));
  half = pod_builder_add_communicator (&builder, communicator ("half", POD_AXIS_TP, 4, 4, 8));
  pod_builder_open (&builder, "first half");
  pod_builder_collective (&builder, POD_PHASE_FORWARD, -1, "gather", POD_STREAM_TP, world,
                          POD_ALL_GATHER, bytes);
  block = pod_builder_close (&builder);
  add_class (program, "first half", block);
  pod_builder_open (&builder, "second half");
  reduce = pod_builder_collective (&builder, POD_PHASE_FORWARD, -1, "reduce", POD_STREAM_TP, half,
                                   POD_ALL_REDUCE, 1024);
  gather = pod_builder_collective (&builder, POD_PHASE_FORWARD, -1, "gather", POD_STREAM_TP, world,
                                   POD_ALL_GATHER, bytes);
  pod_builder_depend (&builder, gather, reduce);
  block = pod_builder_close (&builder);
  add_class (program, "second half", block);
  for (uint32_t rank = 0; rank < 8; rank++)
    program->class_of_rank[rank] = rank / 4;
  pod_builder_clear (&builder);
  return program;
}

/* astra-sim/astra-sim#339 (C14): only some ranks have a collective before that of the world. The
 * others wait for them and the run ends: the gather begins when the reduction ends, whose 6 steps
 * of 2 us and 2 x 3/4 x 1 KiB at 450 GB/s are 12.003 us, and takes 7 steps and 7/8 of its bytes.
 * Loop: analytic, flow, packet. */
START_TEST (late_ranks)
{
  g_autoptr (PodTopology) topology = pod_topology_load ("h100:8", NULL);
  const uint64_t bytes = 450000000;
  const double reduce_s = 6 * 2e-6 + 1.5 * 1024 / 450e9, gather_s = 7 * 2e-6 + 0.875e-3;
  g_autoptr (PodProgram) program = late_half (bytes);
  static const uint32_t ranks[] = { 0, 4 };
  g_autoptr (GError) error = NULL;
  g_autoptr (PodExecResult) result = NULL;
  PodExecRequest request = { .program = program,
                             .fidelity = POD_FIDELITY_IDEAL,
                             .network = (PodNetworkMode) _i,
                             .algorithm = "ring",
                             .record = ranks,
                             .n_record = 2 };

  ck_assert (pod_topology_set (topology, "chip.scale_up_latency", "2us", NULL));
  request.topology = topology;
  result = pod_exec_run (&request, &error);
  ck_assert_msg (result != NULL, "%s", error == NULL ? "?" : error->message);
  ck_assert_double_eq_tol ((double) result->time_ps * 1e-12, reduce_s + gather_s,
                           _i == POD_NETWORK_PACKET ? 1e-3 * gather_s : 1e-11);
  /* The first half has nothing else to do: all that it does not send it waits */
  for (uint32_t r = 0; r < result->n_represented; r++)
    ck_assert_int_eq (result->breakdowns[r].compute_ps, 0);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("exec");
  TCase *tests = tcase_create ("programs");
  SRunner *runner;
  int n_failed;

  tcase_add_loop_test (tests, late_ranks, POD_NETWORK_ANALYTIC, POD_NETWORK_PACKET + 1);
  suite_add_tcase (suite, tests);
  runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
