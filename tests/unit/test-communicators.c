#include "parallel/mesh.h"

#include <stdlib.h>

#include <check.h>

/* Who is in which group of an edge between two stages, told by number and not kept: by its list of members. */

enum
{
  N_STAGES = 4,
};

static const struct
{
  const char *topology;
  const char *map;
  const char *order;
} machines[] = {
  { "h100:8x4", NULL, "tp,cp,fsdp,dp,pp" },
  { "h100:8x4", NULL, "pp,tp,cp,fsdp,dp" },
  { "tpu-v5p:4x4x4", "pp=x tp=y dp=z", NULL },
};

static void
check_edge (const PodMesh *mesh, uint32_t from, uint32_t to)
{
  g_autoptr (PodCommunicator) edge = pod_mesh_edge (mesh, from, to);
  uint32_t n_inside = 0;

  ck_assert_uint_eq (edge->n_groups, mesh->n_ranks / N_STAGES);
  for (uint32_t i = 0; i < edge->n_groups * edge->group_size; i++)
    {
      ck_assert_uint_eq (edge->devices[i], mesh->device_of_rank[edge->members[i]]);
      ck_assert_uint_eq (pod_communicator_group_of (edge, edge->members[i]), i / edge->group_size);
      ck_assert_uint_eq (pod_mesh_coordinate (mesh, edge->members[i], POD_AXIS_PP), i % 2 == 0 ? from : to);
    }
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    n_inside += pod_communicator_group_of (edge, rank) != UINT32_MAX;
  ck_assert_uint_eq (n_inside, edge->n_groups * edge->group_size);
}

START_TEST (test_edges)
{
  g_autoptr (PodTopology) topology = pod_topology_load (machines[_i].topology, NULL);
  PodLayout layout = { .ep = 1, .etp = 1 };
  const PodTraffic traffic = { .compute_s = 1 };
  g_autoptr (PodMesh) mesh = NULL;
  g_autoptr (GError) error = NULL;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    layout.degree[a] = 1;
  layout.degree[POD_AXIS_PP] = N_STAGES;
  layout.degree[POD_AXIS_TP] = 4;
  layout.degree[POD_AXIS_DP] = topology->n_devices / 16;
  mesh = pod_mesh_new (topology, &layout, machines[_i].map, machines[_i].order, &traffic, &error);
  ck_assert_msg (mesh != NULL, "%s", error != NULL ? error->message : "");
  for (uint32_t from = 0; from < N_STAGES; from++)
    for (uint32_t to = 0; to < N_STAGES; to++)
      if (from != to)
        check_edge (mesh, from, to);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("communicators");
  TCase *tests = tcase_create ("communicators");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_add_loop_test (tests, test_edges, 0, G_N_ELEMENTS (machines));
  suite_add_tcase (suite, tests);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
