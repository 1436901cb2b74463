#include "parallel/mesh-shardings.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "scenario/scenario.h"

/* A layout said by --mesh and --shard is the same job as one said by --layout: what comes out is
 * the same to the byte. And what its shardings ask for by the four cases is what the executor
 * sends. */

#define MAX_WORDS 8

typedef struct
{
  const char *topology;
  const char *model;
  const char *mesh;
  const char *shards;           /* separated by ';' */
  const char *layout;           /* the same as degrees */
  const char *words[MAX_WORDS]; /* "name=value" of both */
  const char *of_mesh;          /* (nullable) one more word beside the mesh */
  const char *of_layout;        /* (nullable) one more beside the layout */
} Pair;

static const Pair pairs[] = {
  { "h100:8x2",
    "llama3-8b",
    "X=2,A=4,C=2,O=1",
    "In=[B_XO,S_AC,D]; Wq=[D_X,N_AC]; Wk=[D_X, K_A, H]; Wv=[L_O,D_X,K_A]; W_out=[F_ACX, D]",
    "fsdp=2 tp=8",
    { "kv-heads=4", "heads=32", "head-dim=128" },
    NULL,
    NULL },
  { "h100:8x4",
    "mixtral-8x7b",
    "X=8,Y=4",
    "In=[B_X, S_Y, D]; Wq=[D_X, N_Y, H]; W_expert=[E, D_XY, F]",
    "fsdp=8 tp=4",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "mixtral-8x7b",
    "X=8,Y=4",
    "In=[B_X, S_Y, D]; Wq=[D_X, N_Y, H]",
    "fsdp=8 tp=4",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "deepseek-v2",
    "X=8,Y=4",
    "In=[B_X, S_Y, D]; Wo=[N_Y, H, D_X]",
    "fsdp=8 tp=4",
    { NULL },
    NULL,
    NULL },
  { "tpu-v5p:4x4x2", "llama3-8b", "X=32", "In=[B_X, S, D]", "dp=32", { NULL }, NULL, NULL },
  { "tpu-v5p:4x4x2", "llama3-8b", "X=32", "W_in=[D_X, F]", "fsdp=32", { NULL }, NULL, NULL },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=32",
    "In=[B_X,S,D]; W_in=[D, F_X]; Wo=[N_X,H,D]",
    "fsdp=32",
    { NULL },
    NULL,
    NULL },
  { "h100:8", "llama3-8b", "Y=8", "W_in=[D, F_Y]; W_out=[F_Y, D]", "tp=8", { NULL }, NULL, NULL },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=4,Y=8",
    "In=[B_X, S_Y, D]; W_in=[D_X, F_Y]; W_out=[F_Y, D_X]",
    "fsdp=4 tp=8",
    { NULL },
    NULL,
    NULL },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=4,Y=8",
    "In=[B_X, S, D]; W_in=[D_X, F_Y]; W_out=[F_Y, D_X]",
    "fsdp=4 tp=8",
    { NULL },
    NULL,
    "no-sequence-parallel" },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=4,Y=8",
    "In=[B_X, D_Y]; W_in=[D_X, F_Y]; unembedding=[D, V_YX]",
    "fsdp=4 tp=8",
    { "fidelity=book" },
    NULL,
    NULL },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=2,Z=4,Y=4",
    "In=[B_XZ, S_Y, D]; W_gate=[D_XZ, F_Y]",
    "fsdp=8 tp=4",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "R=4,X=8",
    "In=[B_RX, S, D]; W_in=[D_X, F]",
    "dp=4 fsdp=8",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "R=4,Y=8",
    "In=[B_R, S_Y, D]; Wq=[D, N_Y, H]",
    "dp=4 tp=8",
    { "zero=1" },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "R=4,Y=8",
    "In=[B_R, S_Y, D]; W_in=[D, F_Y]",
    "dp=4 tp=8",
    { "zero=2" },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "R=4,Y=8",
    "In=[B_R, S_Y, D]; Wo=[N_Y, H, D_R]",
    "dp=4 tp=8",
    { "zero=3" },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "X=8,Z=4",
    "In=[B_X, S_Z, D]; W_in=[D_XZ, F]",
    "fsdp=8 cp=4",
    { NULL },
    NULL,
    NULL },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=4,Z=2,Y=4",
    "In=[B_X, S_ZY, D]; embedding=[V_Y, D]",
    "dp=4 cp=2 tp=4",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "P=4,Y=8",
    "W_in=[L_P, D, F_Y]; Wk=[L_P, D, K_Y, H]",
    "pp=4 tp=8",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "llama3-8b",
    "P=2,X=4,Y=4",
    "W_in=[L_P, D_X, F_Y]",
    "pp=2 fsdp=4 tp=4",
    { "schedule=gpipe" },
    NULL,
    NULL },
  { "h100:8x4",
    "mixtral-8x7b",
    "X=8,Y=4",
    "In=[B_X, S_Y, D]; Wq=[D, N_Y, H]; W_expert=[E_X, D, F_Y]",
    "dp=8 tp=4 ep=8 etp=4",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "mixtral-8x7b",
    "X=8,Y=4",
    "In=[B_X, S_Y, D]; Wq=[D_X, N_Y, H]; "
    "W_expert=[E_Y, D_X, F]",
    "fsdp=8 tp=4 ep=4",
    { NULL },
    NULL,
    NULL },
  { "h100:8x4",
    "qwen3-30b",
    "Z=8,X=4",
    "In=[B_XZ, S, D]; Wq=[D_XZ, N, H]; W_expert=[E_Z, D_X, F]",
    "fsdp=32 ep=8",
    { NULL },
    NULL,
    NULL },
  { "tpu-v5p:4x4x2",
    "qwen3-30b",
    "Z=32",
    "W_expert=[E_Z, D, F]",
    "dp=32 ep=32",
    { NULL },
    NULL,
    NULL },
  { "h100:8x2",
    "llama3-8b",
    "A=8,C=2",
    "Wq=[D, N_AC, H]; Wk=[D, K_A, H]",
    "tp=16",
    { NULL },
    NULL,
    NULL },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=4,Y=8",
    "In=[B_X, S_Y, D]; W_in=[D_X, F_Y]",
    "fsdp=4 tp=8",
    { NULL },
    "map=Y=x,y:2 X=y:2,z",
    "map=tp=x,y:2 fsdp=y:2,z" },
  { "tpu-v5p:4x4x2",
    "llama3-8b",
    "X=2,Z=2,Y=8",
    "In=[B_XZ, S_Y, D]; W_in=[D_XZ, F_Y]",
    "fsdp=4 tp=8",
    { NULL },
    "map=Y=x:4,z Z=y:2 X=y:2",
    "map=tp=x,z fsdp=y" },
  { "h100:8x4",
    "llama3-8b",
    "R=4,Y=8",
    "In=[B_R, S_Y, D]; W_in=[D, F_Y]",
    "dp=4 tp=8",
    { NULL },
    "order=R,Y",
    "order=dp,tp" },
  { "h100:8x4",
    "llama3-8b",
    "R=4,X=2,Y=2",
    "In=[B_RX, S_Y, D]; W_in=[D, F_Y]",
    "dp=8 tp=2",
    { "allow-idle" },
    NULL,
    NULL },
};

static void
set_word (PodScenario *scenario, const char *word)
{
  g_auto (GStrv) pair = g_strsplit (word, "=", 2);
  g_autoptr (GError) error = NULL;

  ck_assert_msg (pod_scenario_set (scenario, pair[0], pair[1], &error), "%s: %s", word,
                 error != NULL ? error->message : "");
}

static PodRun *
run_pair (const Pair *pair, bool is_mesh)
{
  const PodRunRequest request = { 0 };
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  const char *last = is_mesh ? pair->of_mesh : pair->of_layout;
  PodRun *run;

  ck_assert (pod_scenario_set (scenario, "topology", pair->topology, NULL));
  ck_assert (pod_scenario_set (scenario, "model", pair->model, NULL));
  ck_assert (pod_scenario_set (scenario, "layers", "4", NULL));
  ck_assert (pod_scenario_set (scenario, "global-batch", "64", NULL));
  ck_assert (pod_scenario_set (scenario, is_mesh ? "mesh" : "layout",
                               is_mesh ? pair->mesh : pair->layout, NULL));
  if (is_mesh)
    ck_assert (pod_scenario_set (scenario, "shard", pair->shards, NULL));
  for (unsigned i = 0; i < MAX_WORDS && pair->words[i] != NULL; i++)
    set_word (scenario, pair->words[i]);
  if (last != NULL)
    set_word (scenario, last);
  run = pod_scenario_run (scenario, &request, &error);
  ck_assert_msg (run != NULL, "%s %s: %s", is_mesh ? pair->mesh : pair->layout, pair->shards,
                 error != NULL ? error->message : "");
  return run;
}

/* All that a run found, without the line that repeats the mesh. */
static char *
result_text (PodRun *run)
{
  g_autoptr (JsonNode) root = json_node_alloc ();
  JsonArray *said = json_object_get_array_member (run->result, "assumptions");

  for (guint i = json_array_get_length (said); i-- > 0;)
    if (g_str_has_prefix (json_array_get_string_element (said, i), "mesh "))
      json_array_remove_element (said, i);
  json_node_init_object (root, run->result);
  return pod_json_to_text (root);
}

START_TEST (test_mesh_is_layout)
{
  const Pair *pair = &pairs[_i];
  g_autoptr (PodRun) mesh = run_pair (pair, true);
  g_autoptr (PodRun) layout = run_pair (pair, false);
  g_autofree char *a = result_text (mesh);
  g_autofree char *b = result_text (layout);
  unsigned at = 0;

  while (a[at] != '\0' && a[at] == b[at])
    at++;
  ck_assert_msg (strcmp (a, b) == 0, "%s %s is not %s: %.60s, not %.60s", pair->mesh, pair->shards,
                 pair->layout, a + at - MIN (at, 30), b + at - MIN (at, 30));
}
END_TEST

/* ---- what is derived is what is sent ---- */

/* By parallelism and collective: whether a layer has it. */
typedef struct
{
  bool has[POD_N_COMM_AXES][POD_N_COLLECTIVES];
} Sent;

/* The axis whose time it is: that of the experts' grid, and dp where cp has copies of weights. */
static void
add_mask (const PodMeshShardings *s, bool is_expert, unsigned mask, PodCollectiveKind kind,
          Sent *out)
{
  for (unsigned a = 0; a < s->mesh.n_axes; a++)
    if (mask >> a & 1)
      {
        PodAxis axis = s->kind[a];

        if (is_expert)
          axis = (s->ep_axes | s->etp_axes) >> a & 1 ? POD_AXIS_EP
                 : s->expert_fsdp_axes >> a & 1      ? POD_AXIS_FSDP
                                                     : POD_AXIS_DP;
        else if (axis == POD_AXIS_CP)
          axis = s->of_kind[POD_AXIS_FSDP] != 0 ? POD_AXIS_FSDP
                 : s->of_kind[POD_AXIS_DP] != 0 ? POD_AXIS_DP
                                                : POD_AXIS_CP;
        out->has[axis][kind] = true;
      }
}

static Sent
derived (const PodRun *run)
{
  g_autoptr (GArray) matmuls = pod_mesh_shardings_matmuls (run->shardings, run->model);
  Sent sent = { 0 };

  for (guint i = 0; i < matmuls->len; i++)
    {
      const PodMeshMatmul *m = &g_array_index (matmuls, PodMeshMatmul, i);
      const bool is_expert = g_str_has_prefix (m->name, "W_expert");

      ck_assert_uint_eq (m->comm.gather_out, 0);
      add_mask (run->shardings, is_expert, m->comm.gather_lhs | m->comm.gather_rhs, POD_ALL_GATHER,
                &sent);
      add_mask (run->shardings, is_expert, m->comm.reduce_scatter, POD_REDUCE_SCATTER, &sent);
      add_mask (run->shardings, is_expert, m->comm.all_reduce, POD_ALL_REDUCE, &sent);
    }
  return sent;
}

static Sent
executed (const PodRun *run)
{
  Sent sent = { 0 };

  for (guint i = 0; i < run->program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (run->program->ops, PodOp, i);

      if (op->kind == POD_OP_COLLECTIVE)
        {
          const PodCommunicator *comm = g_ptr_array_index (run->program->communicators, op->comm);

          sent.has[comm->axis][op->collective] = true;
        }
    }
  return sent;
}

/* Tensor parallelism: what is derived, no more and no less, in the ops of layers. */
static bool
layers_have (const PodRun *run, PodAxis axis, PodCollectiveKind kind)
{
  for (guint i = 0; i < run->program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (run->program->ops, PodOp, i);

      if (op->kind == POD_OP_COLLECTIVE && op->layer >= 0 && op->collective == kind
          && op->stream == POD_STREAM_TP
          && ((PodCommunicator *) g_ptr_array_index (run->program->communicators, op->comm))->axis
                 == axis)
        return true;
    }
  return false;
}

START_TEST (test_cases_are_sent)
{
  static const PodCollectiveKind kinds[] = { POD_ALL_GATHER, POD_REDUCE_SCATTER, POD_ALL_REDUCE };
  g_autoptr (PodRun) run = run_pair (&pairs[_i], true);
  const Sent asked = derived (run);
  const Sent sent = executed (run);

  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    for (unsigned k = 0; k < G_N_ELEMENTS (kinds); k++)
      ck_assert_msg (!asked.has[a][kinds[k]] || sent.has[a][kinds[k]], "%s %s: no %s over %s",
                     pairs[_i].mesh, pairs[_i].shards, pod_collective_name (kinds[k]),
                     pod_axis_name (a));
  for (unsigned k = 0; k < G_N_ELEMENTS (kinds); k++)
    ck_assert_msg (layers_have (run, POD_AXIS_TP, kinds[k]) == asked.has[POD_AXIS_TP][kinds[k]],
                   "%s %s: %s over tp", pairs[_i].mesh, pairs[_i].shards,
                   pod_collective_name (kinds[k]));
}
END_TEST

/* ---- the four cases, by hand ---- */

/* How to Scale Your Model, chapter 5, mixed FSDP and tensor parallelism: In[B_X, D_Y] .
 * W_in[D_X, F_Y] -> Tmp[B_X, F_Y] gathers In over Y and W_in over X (both on the summed D: case 2);
 * Tmp[B_X, F_Y] . W_out[F_Y, D_X] -> Out[B_X, D_Y] gathers W_out over X (against the batch: case 4)
 * and scatters its sum over Y (case 3). */
START_TEST (test_book_block)
{
  /* as docs/guide/layouts.md shows it */
  /* clang-format off */
  static const char text[] =
      "\n"
      "shardings: the products of a layer, by the four cases of a sharded matmul\n"
      "weight    product                                                   axes\n"
      "W_in      In[B_X, S_Y, D] * W_in[D_X, F_Y] -> Tmp[B_X, S, F_Y]      Y: case 4, all-gather In; X: case 2, all-gather W_in\n"
      "W_in dX   dTmp[B_X, S, F_Y] * W_in[D_X, F_Y] -> dIn[B_X, S_Y, D]    X: case 4, all-gather W_in; Y: case 3, reduce-scatter dIn\n"
      "W_in dW   In[B_X, S_Y, D] * dTmp[B_X, S, F_Y] -> dW_in[D_X, F_Y]    Y: case 2, all-gather In; X: case 3, reduce-scatter dW_in\n"
      "W_out     Tmp[B_X, S, F_Y] * W_out[F_Y, D_X] -> Out[B_X, S_Y, D]    X: case 4, all-gather W_out; Y: case 3, reduce-scatter Out\n"
      "W_out dX  dOut[B_X, S_Y, D] * W_out[F_Y, D_X] -> dTmp[B_X, S, F_Y]  Y: case 4, all-gather dOut; X: case 2, all-gather W_out\n"
      "W_out dW  Tmp[B_X, S, F_Y] * dOut[B_X, S_Y, D] -> dW_out[F_Y, D_X]  Y: case 2, all-gather dOut; X: case 3, reduce-scatter dW_out\n";
  /* clang-format on */
  static const struct
  {
    const char *name;
    unsigned case_of_x, case_of_y;
  } wanted[] = { { "W_in", 2, 4 },  { "W_in dX", 4, 3 },  { "W_in dW", 3, 2 },
                 { "W_out", 4, 3 }, { "W_out dX", 2, 4 }, { "W_out dW", 3, 2 } };
  const Pair pair = { "tpu-v5p:4x4x2",
                      "mlp-block",
                      "X=4,Y=8",
                      "In=[B_X, S_Y, D]; W_in=[D_X, F_Y]; W_out=[F_Y, D_X]",
                      NULL,
                      { NULL },
                      NULL,
                      NULL };
  g_autoptr (PodRun) run = run_pair (&pair, true);
  g_autoptr (GArray) matmuls = pod_mesh_shardings_matmuls (run->shardings, run->model);
  g_autofree char *told = pod_mesh_shardings_explain (run->shardings, run->model);

  ck_assert_str_eq (told, text);
  for (unsigned i = 0; i < G_N_ELEMENTS (wanted); i++)
    {
      const PodMeshMatmul *m = &g_array_index (matmuls, PodMeshMatmul, i);

      ck_assert_str_eq (m->name, wanted[i].name);
      ck_assert_msg (pod_mesh_matmul_case (m, 0) == wanted[i].case_of_x, "%s: X", m->name);
      ck_assert_msg (pod_mesh_matmul_case (m, 1) == wanted[i].case_of_y, "%s: Y", m->name);
    }
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("mesh-shardings");
  TCase *jobs = tcase_create ("jobs");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (jobs, 120);
  tcase_add_loop_test (jobs, test_mesh_is_layout, 0, G_N_ELEMENTS (pairs));
  tcase_add_loop_test (jobs, test_cases_are_sent, 0, G_N_ELEMENTS (pairs));
  tcase_add_test (jobs, test_book_block);
  suite_add_tcase (suite, jobs);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
