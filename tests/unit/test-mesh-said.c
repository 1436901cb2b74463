#include "parallel/mesh-shardings.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"
#include "parallel/mesh.h"

/* Meshes and shardings as they are read: every sharding of a few tensors, and where the axes stand.
 */

/* ---- all shardings of a few tensors ---- */

/* In, a dense weight, another of its kind, and the experts': which dimension each axis cuts. */
typedef struct
{
  const char *model;
  const char *names[4];
  const char *dims[4];
} Family;

static const Family families[] = {
  { "llama3-8b", { "In", "W_in", "W_out", NULL }, { "BSD", "DF", "FD", NULL } },
  { "mixtral-8x7b", { "In", "Wq", "W_expert", NULL }, { "BSD", "DNH", "EDF", NULL } },
};

#define N_CUBE_AXES 3

/* "W_in=[D_XZ,F]", its dimensions cut as the digits of @code say, a digit for each axis. */
static char *
tensor_text (const char *name, const char *dims, unsigned code)
{
  static const char axes[N_CUBE_AXES] = { 'X', 'Y', 'Z' };
  const unsigned base = (unsigned) strlen (dims) + 1;
  GString *text = g_string_new (name);

  for (unsigned d = 0; dims[d] != '\0'; d++)
    {
      bool is_cut = false;
      unsigned left = code;

      g_string_append_printf (text, "%s%c", d > 0 ? "," : "=[", dims[d]);
      for (unsigned a = 0; a < N_CUBE_AXES; a++, left /= base)
        if (left % base == d + 1)
          {
            g_string_append_printf (text, "%s%c", is_cut ? "" : "_", axes[a]);
            is_cut = true;
          }
    }
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

static uint32_t
n_parts (const PodMeshShardings *s, PodMeshTensor tensor)
{
  return pod_array_mesh_size (&s->mesh, pod_array_axes (&s->said[tensor]));
}

/* A device holds as much of each tensor as the executor's layout gives it: the parts that are said
 * are as many as the layout's; and no product leaves a result cut where it should be whole. */
static void
check_accepted (const PodMeshShardings *s, const PodModel *model, const char *text)
{
  const PodLayout *l = &s->layout;
  const uint32_t tp = l->degree[POD_AXIS_TP];
  const uint32_t fsdp = l->degree[POD_AXIS_FSDP];
  const uint32_t cp = l->degree[POD_AXIS_CP];
  const uint32_t weight = tp * (fsdp > 1 ? fsdp * cp : 1);
  g_autoptr (GArray) matmuls = pod_mesh_shardings_matmuls (s, model);
  uint32_t grid[POD_N_EXPERT_AXES];

  ck_assert_msg (pod_layout_n_ranks (l) == pod_array_mesh_n_devices (&s->mesh), "%s", text);
  ck_assert_msg (n_parts (s, POD_MESH_IN)
                     == l->degree[POD_AXIS_DP] * fsdp * cp * (l->is_sequence_parallel ? tp : 1),
                 "%s: In", text);
  for (unsigned t = POD_MESH_W_IN; t <= POD_MESH_WQ; t++)
    ck_assert_msg (!s->is_said[t] || n_parts (s, t) == weight, "%s: tensor %u", text, t);
  pod_layout_expert_grid (l, grid);
  ck_assert_msg (!s->is_said[POD_MESH_W_EXPERT]
                     || n_parts (s, POD_MESH_W_EXPERT)
                            == grid[POD_EXPERT_EP] * grid[POD_EXPERT_ETP] * grid[POD_EXPERT_FSDP],
                 "%s: W_expert", text);
  for (guint i = 0; i < matmuls->len; i++)
    ck_assert_msg (g_array_index (matmuls, PodMeshMatmul, i).comm.gather_out == 0, "%s", text);
}

START_TEST (test_all_shardings)
{
  const Family *family = &families[_i];
  g_autoptr (PodModel) model = pod_model_load (family->model, NULL);
  g_autoptr (GPtrArray) mesh = g_ptr_array_new ();
  unsigned n_codes[4] = { 1, 1, 1, 1 };
  unsigned n_accepted = 0;

  ck_assert (model != NULL);
  g_ptr_array_add (mesh, (char[]){ "X=2,Y=2,Z=2" });
  for (unsigned t = 0; family->names[t] != NULL; t++)
    for (unsigned a = 0; a < N_CUBE_AXES; a++)
      n_codes[t] *= (unsigned) strlen (family->dims[t]) + 1;
  for (unsigned code = 0; code < n_codes[0] * n_codes[1] * n_codes[2]; code++)
    {
      g_autofree char *in = tensor_text (family->names[0], family->dims[0], code % n_codes[0]);
      g_autofree char *one
          = tensor_text (family->names[1], family->dims[1], code / n_codes[0] % n_codes[1]);
      g_autofree char *other
          = tensor_text (family->names[2], family->dims[2], code / n_codes[0] / n_codes[1]);
      g_autofree char *text = g_strconcat (in, ";", one, ";", other, NULL);
      g_autoptr (GPtrArray) shards = g_ptr_array_new ();
      const PodMeshRequest request
          = { .model = model, .mesh = mesh, .shards = shards, .is_sequence_parallel = -1 };
      g_autoptr (GError) error = NULL;
      PodMeshShardings s;

      g_ptr_array_add (shards, text);
      if (pod_mesh_shardings_parse (&request, &s, &error))
        {
          check_accepted (&s, model, text);
          n_accepted++;
        }
      else
        ck_assert_msg (g_str_has_prefix (error->message, "--shard: "), "%s", error->message);
    }
  ck_assert_uint_gt (n_accepted, 27); /* three axes of at least three kinds */
}
END_TEST

/* ---- where the axes stand ---- */

/* Places in names of the mesh's axes. */
static const struct
{
  const char *topology;
  const char *map;
  const char *order;
} places[] = {
  { "tpu-v5p:4x4x4", "Y=x:2,y:2 X=x:2,z:2 Z=y:2,z:2", NULL },
  { "tpu-v5p:4x4x4", "Y=y:2,x:2 X=x:2,y:2 Z=z", NULL },
  { "tpu-v5p:4x4x4", "Z=z X=y Y=x", NULL },
  { "tpu-v5p:4x4x4", "X=x:2,y:2 Y=z Z=x:2,y:2", NULL }, /* fsdp is x and y, walked as two squares */
  { "tpu-v5p:4x4x4", "X=z:2,y:2 Z=x Y=y:2,z:2", NULL },
  { "tpu-v5p:4x4x4*2", "Z=x Y=y X=z", NULL },
  { "h100:8x8", NULL, "X,Z,Y" },
  { "h100:8x8", NULL, "Y,Z,X" },
  { "h100:8x8", NULL, "X,Y,Z" }, /* tp between the axes of fsdp */
};

static int
compare_devices (const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *) a;
  const uint32_t y = *(const uint32_t *) b;

  return x < y ? -1 : x > y;
}

/* "0 1 4 5": who is in a group, in any order. */
static char *
members_text (const uint32_t *devices, uint32_t n)
{
  g_autofree uint32_t *sorted = g_memdup2 (devices, n * sizeof *devices);
  GString *text = g_string_new (NULL);

  qsort (sorted, n, sizeof *sorted, compare_devices);
  for (uint32_t i = 0; i < n; i++)
    g_string_append_printf (text, " %u", sorted[i]);
  return g_string_free (text, FALSE);
}

/* Who differs only in the mesh's axes of a kind is who the executor's communicator of that kind
 * joins. */
static void
check_groups (const PodMeshShardings *s, const PodArrayMesh *placed, const PodMesh *mesh,
              PodAxis axis)
{
  g_autoptr (PodCommunicator) comm
      = pod_mesh_communicator (mesh, POD_MASK (axis), axis, pod_axis_name (axis));
  g_autoptr (GHashTable) groups = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (uint32_t g = 0; g < comm->n_groups; g++)
    {
      g_auto (PodArrayGroup) group = { .devices = NULL };

      pod_array_mesh_group (placed, s->of_kind[axis], g, &group);
      g_hash_table_add (groups, members_text (group.devices, comm->group_size));
    }
  for (uint32_t g = 0; g < comm->n_groups; g++)
    {
      g_autofree char *members
          = members_text (comm->devices + (size_t) g * comm->group_size, comm->group_size);

      ck_assert_msg (g_hash_table_contains (groups, members), "%s: group of %s:%s", mesh->text,
                     pod_axis_name (axis), members);
    }
}

START_TEST (test_places)
{
  g_autoptr (PodModel) model = pod_model_load ("llama3-8b", NULL);
  g_autoptr (PodTopology) topology = pod_topology_load (places[_i].topology, NULL);
  g_autoptr (GPtrArray) mesh = g_ptr_array_new ();
  g_autoptr (GPtrArray) shards = g_ptr_array_new ();
  const PodMeshRequest request
      = { .model = model,
          .mesh = mesh,
          .shards = shards,
          .placing = places[_i].map != NULL ? places[_i].map : places[_i].order,
          .is_sequence_parallel = -1 };
  const PodTraffic traffic = { .compute_s = 1 };
  g_autoptr (PodMesh) executed = NULL;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  PodMeshShardings s;
  PodArrayMesh placed;

  g_ptr_array_add (mesh, (char[]){ "X=4,Y=4,Z=4" });
  g_ptr_array_add (shards, (char[]){ "In=[B_XZ,S_Y,D];W_in=[D_XZ,F_Y]" });
  ck_assert (pod_mesh_shardings_parse (&request, &s, NULL));
  ck_assert (pod_mesh_shardings_is_placing (&s, request.placing));
  text = pod_mesh_shardings_place (&s, topology, places[_i].map, places[_i].order, &error);
  placed = s.mesh;
  ck_assert (pod_array_mesh_place (&placed, topology, places[_i].map, places[_i].order, NULL));
  if (text == NULL) /* the only order that parts fsdp */
    {
      ck_assert_str_eq (request.placing, "X,Y,Z");
      ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_UNSUPPORTED));
      return;
    }
  executed = pod_mesh_new (topology, &s.layout, places[_i].map != NULL ? text : NULL,
                           places[_i].order != NULL ? text : NULL, &traffic, &error);
  ck_assert_msg (executed != NULL, "%s: %s", text, error != NULL ? error->message : "");
  check_groups (&s, &placed, executed, POD_AXIS_FSDP);
  check_groups (&s, &placed, executed, POD_AXIS_TP);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("mesh-said");
  TCase *said = tcase_create ("said");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (said, 120);
  tcase_add_loop_test (said, test_all_shardings, 0, G_N_ELEMENTS (families));
  tcase_add_loop_test (said, test_places, 0, G_N_ELEMENTS (places));
  suite_add_tcase (suite, said);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
