/* Mixture of experts in a training step:
 *   - the groups of the experts' grid are what the ranks' numbers say, and their factors on a torus are where the devices stand;
 *   - a folded run and a run of every rank give the same result, and breakdowns add up, on machines of every family;
 *   - weights of a rank are its experts' and the rest's by closed form; all ranks together hold each expert once a copy;
 *   - tokens move as many bytes as they have; more load takes longer.
 * Nothing here is compared with a stored number. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "parallel/mesh.h"
#include "scenario/scenario.h"

/* 128 devices each, but for the tori of the grid test, which says its own. */
static const struct
{
  const char *topology;
  const char *layout;
  const char *model;
  const char *more; /* one more option */
} machines[] = {
  { "h100:8x16", "dp=16 tp=8 ep=8", "mixtral-8x7b", "zero=1" },                  /* experts where tp is */
  { "h100:8x16", "dp=16 tp=8 ep=4 etp=2", "mixtral-8x7b", "zero=1" },
  { "h100:8x16", "dp=16 tp=8 ep=2", "mixtral-8x7b", "zero=2" },                  /* copies within tp */
  { "h100:8x16", "fsdp=128 ep=64", "qwen3-30b", "dispatch-dtype=fp8" },          /* across nodes */
  { "h100:8x16", "fsdp=128 ep=64", "qwen3-30b", "route-nodes=4" },
  { "h100:8x16", "fsdp=16 dp=8 ep=32", "qwen3-30b", "order=tp,dp,ep,fsdp" },
  { "h100:8x16,rails=1", "dp=128 ep=32", "qwen3-30b", "zero=1" },
  { "gb200:64x2", "dp=16 pp=8 ep=16", "qwen3-30b", "expert-imbalance=zipf:0.3" },
  { "mi300x:8x16", "fsdp=16 tp=8 ep=32", "qwen3-30b", "recompute=full" },
  { "tpu-v5p:4x4x8", "fsdp=32 tp=4 ep=8", "mixtral-8x7b", "recompute=full" },    /* over part of an axis */
  { "tpu-v5p:4x4x8", "fsdp=128 ep=32", "qwen3-30b", "capacity-factor=1.25" },
  { "tpu-v6e:8x16", "dp=8 pp=4 tp=4 ep=8", "qwen3-30b", "recompute=selective" },
  { "tpu-v7x:4x4x4", "fsdp=128 ep=16", "gpt-oss-20b", "zero=0" },
  { "tpu-v4:4x4x4*2", "dp=2 fsdp=64 ep=16", "qwen3-30b", "zero=1" },
};

static const PodRunRequest no_request = { 0 };

static PodRun *
run_words (const char *const *words, GError **error)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();

  for (unsigned i = 0; words[i] != NULL; i++)
    {
      g_auto (GStrv) pair = g_strsplit (words[i], "=", 2);

      ck_assert_msg (pod_scenario_set (scenario, pair[0], pair[1], NULL), "%s", words[i]);
    }
  return pod_scenario_run (scenario, &no_request, error);
}

/* Of "name=value" words, NULL-terminated. */
static PodRun *
run_job (const char *first, ...)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  PodRun *run;
  va_list args;

  va_start (args, first);
  for (const char *word = first; word != NULL; word = va_arg (args, const char *))
    g_ptr_array_add (words, (void *) word);
  va_end (args);
  g_ptr_array_add (words, NULL);
  run = run_words ((const char *const *) words->pdata, &error);
  ck_assert_msg (run != NULL, "%s: %s", first, error != NULL ? error->message : "");
  return run;
}

static PodRun *
run_machine (int i, const char *fold, const char *fidelity)
{
  g_autofree char *topology = g_strdup_printf ("topology=%s", machines[i].topology);
  g_autofree char *layout = g_strdup_printf ("layout=%s", machines[i].layout);
  g_autofree char *model = g_strdup_printf ("model=%s", machines[i].model);
  g_autofree char *folding = g_strdup_printf ("fold=%s", fold);
  g_autofree char *level = g_strdup_printf ("fidelity=%s", fidelity);

  return run_job (topology, layout, model, folding, level, "seq-len=2048", "global-batch=256", "layers=8", machines[i].more, NULL);
}

static char *
result_text (PodRun *run)
{
  g_autoptr (JsonNode) root = json_node_alloc ();

  json_node_init_object (root, run->result);
  return pod_json_to_text (root);
}

START_TEST (test_folded_is_unfolded)
{
  g_autoptr (PodRun) folded = run_machine (_i, "auto", "calibrated");
  g_autoptr (PodRun) unfolded = run_machine (_i, "off", "calibrated");
  g_autofree char *a = result_text (folded);
  g_autofree char *b = result_text (unfolded);

  ck_assert_msg (folded->exec->time_ps == unfolded->exec->time_ps, "%s %s: folded %ld ps, unfolded %ld ps", machines[_i].topology, machines[_i].layout,
                 (long) folded->exec->time_ps, (long) unfolded->exec->time_ps);
  ck_assert_msg (strcmp (a, b) == 0, "%s %s: results differ", machines[_i].topology, machines[_i].layout);
  for (uint32_t r = 0; r < unfolded->exec->n_represented; r++)
    {
      const PodBreakdown *breakdown = &unfolded->exec->breakdowns[r];
      int64_t sum = breakdown->compute_ps + breakdown->bubble_ps + breakdown->idle_ps;

      for (unsigned x = 0; x < POD_N_COMM_AXES; x++)
        sum += breakdown->exposed_ps[x];
      ck_assert_int_eq (sum, unfolded->exec->time_ps);
    }
  ck_assert (unfolded->exec->breakdown.comm_ps[POD_AXIS_EP] > 0);
}
END_TEST

START_TEST (test_ideal_and_bound_are_below)
{
  g_autoptr (PodRun) calibrated = run_machine (_i, "auto", "calibrated");
  g_autoptr (PodRun) ideal = run_machine (_i, "auto", "ideal");
  g_autoptr (GError) error = NULL;

  ck_assert_msg (ideal->exec->time_ps <= calibrated->exec->time_ps, "%s: ideal %ld, calibrated %ld", machines[_i].topology, (long) ideal->exec->time_ps, (long) calibrated->exec->time_ps);
  ck_assert (ideal->exec->lower_bound_ps <= ideal->exec->time_ps);
  ck_assert (calibrated->exec->lower_bound_ps <= calibrated->exec->time_ps);
  ck_assert_msg (pod_timeline_check (calibrated->exec->timeline, &error), "%s: %s", machines[_i].topology, error != NULL ? error->message : "");
}
END_TEST

/* Every axis of the grid: its groups cover all ranks once, and members that differ in one digit stand that far apart. */
static void
check_groups (const PodMesh *mesh, const PodCommunicator *comm)
{
  g_autofree bool *is_seen = g_new0 (bool, mesh->n_ranks);

  for (uint32_t i = 0; i < comm->n_groups * comm->group_size; i++)
    {
      ck_assert (!is_seen[comm->members[i]]);
      is_seen[comm->members[i]] = true;
      ck_assert_uint_eq (comm->devices[i], mesh->device_of_rank[comm->members[i]]);
      ck_assert_uint_eq (pod_communicator_group_of (comm, comm->members[i]), i / comm->group_size);
    }
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    ck_assert (is_seen[rank]);
}

static void
check_factors (const PodMesh *mesh, const PodCommunicator *comm)
{
  const unsigned n_cores = mesh->topology->chip->devices_per_chip;

  for (uint32_t g = 0; g < comm->n_groups; g++)
    for (uint32_t i = 0; i < comm->group_size; i++)
      {
        const uint32_t *devices = comm->devices + (size_t) g * comm->group_size;
        unsigned at[POD_DIM_CORE + 1] = { 0 };
        unsigned want[POD_DIM_CORE + 1] = { 0 };
        uint32_t left = i;

        pod_topology_coords (mesh->topology, devices[0], want);
        want[POD_DIM_CORE] = devices[0] % n_cores;
        pod_topology_coords (mesh->topology, devices[i], at);
        at[POD_DIM_CORE] = devices[i] % n_cores;
        for (unsigned f = 0; f < comm->n_factors; f++)
          {
            want[comm->factors[f].dim] += left % comm->factors[f].size * comm->factors[f].stride;
            left /= comm->factors[f].size;
          }
        ck_assert_uint_eq (left, 0);
        ck_assert_msg (memcmp (at, want, sizeof at) == 0, "%s: member %u of group %u", comm->name, i, g);
      }
}

static const struct
{
  const char *topology;
  const char *layout;
  const char *map;
  uint32_t grid[POD_N_EXPERT_AXES];
  bool has_factors;
} grids[] = {
  { "tpu-v5p:4x4x8", "fsdp=32 tp=4 ep=8", "tp=x:4 fsdp=y,z", { 1, 8, 16, 1 }, true },
  { "tpu-v5p:4x4x8", "fsdp=32 tp=4 ep=8 etp=4", "tp=x:2,y:2 fsdp=x:2,y:2,z", { 4, 8, 4, 1 }, true },
  { "tpu-v5p:4x4x8", "fsdp=32 tp=4 ep=2", "tp=x:4 fsdp=y,z", { 1, 2, 64, 1 }, true },
  { "tpu-v5p:4x4x8", "dp=32 tp=4 ep=16", "tp=x:4 dp=z,y", { 1, 16, 1, 8 }, true },
  { "tpu-v5p:4x4x8", "dp=2 fsdp=16 tp=4 ep=32", "tp=x:4 fsdp=y,z:4 dp=z:2", { 1, 32, 2, 2 }, true },
  { "tpu-v5p:4x4x8", "dp=4 fsdp=8 pp=4 ep=16", "fsdp=z dp=y pp=x", { 1, 16, 1, 2 }, true },
  { "tpu-v7x:4x4x4", "fsdp=128 ep=8", "fsdp=core,x,y,z", { 1, 8, 16, 1 }, true },
  { "tpu-v5p:3x4x8,unchecked", "fsdp=96 ep=2", "fsdp=x,y,z", { 1, 2, 48, 1 }, false }, /* half of a row of three */
  { "h100:8x16", "dp=16 tp=8 ep=2 etp=2", NULL, { 2, 2, 1, 32 }, true },
};

START_TEST (test_grid)
{
  static const char *const names[POD_N_EXPERT_AXES] = { "etp", "ep", "fsdp", "dp" };
  g_autoptr (GError) error = NULL;
  g_autoptr (PodTopology) topology = pod_topology_load (grids[_i].topology, &error);
  const PodTraffic traffic = { .compute_s = 1 };
  PodLayout layout;
  g_autoptr (PodMesh) mesh = NULL;

  ck_assert_msg (topology != NULL, "%s", error != NULL ? error->message : "");
  ck_assert_msg (pod_layout_parse (grids[_i].layout, topology->n_devices, &layout, &error), "%s", error != NULL ? error->message : "");
  mesh = pod_mesh_new (topology, &layout, grids[_i].map, NULL, &traffic, &error);
  ck_assert_msg (mesh != NULL, "%s", error != NULL ? error->message : "");
  for (unsigned a = 0; a < POD_N_EXPERT_AXES; a++)
    {
      g_autoptr (PodCommunicator) comm = pod_mesh_expert_communicator (mesh, a, POD_AXIS_EP, names[a]);

      ck_assert_uint_eq (comm->group_size, grids[_i].grid[a]);
      check_groups (mesh, comm);
      if (topology->fabric == POD_FABRIC_TORUS && comm->n_factors > 0)
        check_factors (mesh, comm);
      if (topology->fabric == POD_FABRIC_TORUS && a == POD_EXPERT_EP)
        ck_assert_msg ((comm->n_factors > 0) == grids[_i].has_factors, "%s: %u factors", grids[_i].layout, comm->n_factors);
    }
}
END_TEST

static double
number_at (PodRun *run, const char *object, const char *member)
{
  return json_object_get_double_member (json_object_get_object_member (run->result, object), member);
}

/* qwen3-30b: 48 layers of 128 experts, three matrices 2048 x 768 each, no tp: a rank's weights are the rest, which no layout
 * without fsdp cuts, and its experts. */
START_TEST (test_weights)
{
  static const uint32_t eps[] = { 1, 2, 8, 64 };
  g_autofree char *layout = g_strdup_printf ("layout=dp=64 ep=%u", eps[_i]);
  g_autofree char *sharded_layout = g_strdup_printf ("layout=fsdp=64 ep=%u", eps[_i]);
  g_autoptr (PodRun) run = run_job ("topology=h100:8x8", "model=qwen3-30b", "seq-len=1024", "global-batch=64", layout, "fidelity=book", NULL);
  g_autoptr (PodRun) sharded = run_job ("topology=h100:8x8", "model=qwen3-30b", "seq-len=1024", "global-batch=64", sharded_layout, "fidelity=book", NULL);
  const double experts = 48.0 * 128 * 3 * 2048 * 768;
  PodParams params;
  double rest;

  pod_model_params (run->model, &params);
  ck_assert_double_eq ((double) params.experts, experts);
  rest = (double) (params.total - params.experts) + 2.0 * (double) (pod_job_padded_vocab (&run->job) - run->model->vocab) * 2048;
  ck_assert_double_eq_tol (number_at (run, "memory", "params_bytes"), 2 * (rest + experts / eps[_i]), 1);
  ck_assert_double_eq_tol (number_at (sharded, "memory", "params_bytes"), 2 * (rest + experts) / 64, 1); /* each expert once */
  /* all ranks together hold each expert once a copy */
  ck_assert_double_eq (64 * number_at (run, "moe", "expert_params_per_layer"), experts / 48 * number_at (run, "moe", "expert_data_parallel"));
}
END_TEST

/* Of collectives over @comm that @run has, the bytes; 0: there are none. */
static uint64_t
bytes_over (const PodRun *run, const char *comm)
{
  for (guint i = 0; i < run->exec->collectives->len; i++)
    {
      const PodCollectiveUse *use = &g_array_index (run->exec->collectives, PodCollectiveUse, i);

      if (strcmp (use->comm, comm) == 0)
        return use->bytes;
    }
  return 0;
}

/* Where a token's experts fall. Two nodes of 64 experts, 8 of them drawn: 2 (1 - C(32,8) / C(64,8)) = 1.9952 nodes, of 16 ranks
 * 16 (1 - C(60,8) / C(64,8)) = 6.7509. DeepSeek-V3 draws 4 of 8 groups, a node's each with ep=64 on 8 nodes: 4 (1 - C(96,8) / C(128,8)) =
 * 3.6290 nodes, 32 (1 - C(124,8) / C(128,8)) = 7.3594 ranks. */
START_TEST (test_destinations)
{
  g_autoptr (PodRun) two = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=2", "seq-len=1024", "global-batch=8", "layout=dp=8 tp=4 ep=32", "route-nodes=2", NULL);
  g_autoptr (PodRun) book = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=2", "seq-len=1024", "global-batch=8", "layout=dp=8 tp=4 ep=32", "fidelity=book", "route-nodes=2", NULL);
  g_autoptr (PodRun) groups = run_job ("topology=h800:8x8", "model=deepseek-v3", "layers=4", "seq-len=1024", "global-batch=64", "layout=dp=64 ep=64", "route-nodes=8", NULL);
  const double token = 2048 * 2;
  const double wide = 7168 * 2;

  ck_assert_double_eq_tol ((double) bytes_over (two, "ep across nodes"), 256 * token * 1.9952472, 256 * token * 1e-6);
  ck_assert_double_eq_tol ((double) bytes_over (two, "ep in node"), 256 * token * 6.7509, 256 * token * 1e-4);
  ck_assert_double_eq ((double) bytes_over (book, "ep across nodes"), 256 * token * 2);
  ck_assert_double_eq ((double) bytes_over (book, "ep in node"), 256 * token * 8);
  ck_assert_double_eq_tol ((double) bytes_over (groups, "ep across nodes"), 1024 * wide * 3.6290, 1024 * wide * 1e-4);
  ck_assert_double_eq_tol ((double) bytes_over (groups, "ep in node"), 1024 * wide * 7.3594, 1024 * wide * 1e-4);
}
END_TEST

static PodRun *
run_hosted (const char *first, const char *second)
{
  return run_job ("topology=h100:8", "model=gpt-oss-20b", "layers=2", "seq-len=1024", "global-batch=8", "layout=dp=8 ep=8", "framework=megatron", first, second, NULL);
}

/* What the host launches, the device waits for: nothing of a step that is one graph, less where layers are graphs but for their experts, less
 * where a capacity tells the sizes; op by op there is more of it, and more bytes. */
START_TEST (test_host)
{
  g_autoptr (PodRun) eager = run_hosted ("expert-ops=eager", NULL);
  g_autoptr (PodRun) fused = run_hosted ("expert-ops=fused", NULL);
  g_autoptr (PodRun) layers = run_hosted ("expert-ops=fused", "set=framework.cuda_graphs=layers");
  g_autoptr (PodRun) step = run_hosted ("expert-ops=fused", "set=framework.cuda_graphs=step");
  g_autoptr (PodRun) known = run_hosted ("expert-ops=fused", "capacity-factor=1");
  const unsigned host = POD_LOSS_HOST;

  ck_assert_double_eq (step->exec->losses_s[host], 0);
  ck_assert_double_gt (layers->exec->losses_s[host], 0);
  ck_assert_double_lt (layers->exec->losses_s[host], fused->exec->losses_s[host]);
  ck_assert_double_lt (known->exec->losses_s[host], fused->exec->losses_s[host]);
  ck_assert_double_gt (eager->exec->losses_s[host], fused->exec->losses_s[host]);
  ck_assert_double_gt (eager->exec->kernel_s[POD_KERNEL_VECTOR], fused->exec->kernel_s[POD_KERNEL_VECTOR]);
}
END_TEST

/* A copy is hidden values of 2 bytes, in fp8 one and a 4-byte scale for each 128; a group of n keeps 1/n of them to itself. */
START_TEST (test_bytes)
{
  g_autoptr (PodRun) bf16 = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=2", "seq-len=1024", "global-batch=8", "layout=dp=8 tp=4 ep=32", "fidelity=ideal", NULL);
  g_autoptr (PodRun) fp8 = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=2", "seq-len=1024", "global-batch=8", "layout=dp=8 tp=4 ep=32", "fidelity=ideal", "dispatch-dtype=fp8", NULL);
  g_autoptr (PodRun) cut = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=2", "seq-len=1024", "global-batch=8", "layout=dp=8 tp=4 ep=32", "fidelity=ideal", "route-nodes=2", NULL);
  const double copies = 1024.0 / 4 * 8;

  ck_assert_double_eq (number_at (bf16, "moe", "dispatch_bytes"), copies * 2048 * 2);
  ck_assert_double_eq (number_at (fp8, "moe", "dispatch_bytes"), copies * (2048 + 2048 / 128 * 4));
  ck_assert_double_eq (number_at (fp8, "moe", "combine_bytes"), copies * 2048 * 2);
  ck_assert (cut->exec->breakdown.comm_ps[POD_AXIS_EP] < bf16->exec->breakdown.comm_ps[POD_AXIS_EP]);
}
END_TEST

/* Backward keeps, for each copy, what came and what the matrices put out: gate, up and their product (three widths). */
START_TEST (test_activations)
{
  g_autoptr (PodRun) one = run_job ("topology=h100:1", "model=qwen3-30b", "layers=1", "seq-len=4096", "global-batch=1", "layout=dp=1", "set=model.top_k=2", NULL);
  g_autoptr (PodRun) two = run_job ("topology=h100:1", "model=qwen3-30b", "layers=1", "seq-len=4096", "global-batch=1", "layout=dp=1", "set=model.top_k=8", NULL);
  const double a = number_at (one, "memory", "activations_bytes");
  const double b = number_at (two, "memory", "activations_bytes");

  ck_assert_double_eq (b - a, (8 - 2) * 4096.0 * (2048 + 3 * 768) * 2);
}
END_TEST

/* A schedule may part weight gradients from those of inputs, or weave a forward with a backward: all that appears vanishes again in a
 * step, the weights' kernels are there as often, and what is computed beside a forward hides more of the tokens' way. */
static const char *const schedules[] = { "gpipe", "1f1b", "zb-h1", "zb-v", "dualpipe", "dualpipe-v", "interleaved overlap-ep=true" };

static PodRun *
run_schedule (const char *text, const char *more)
{
  g_auto (GStrv) words = g_strsplit (text, " ", 2);
  g_autofree char *word = g_strdup_printf ("schedule=%s", words[0]);

  return run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=16", g_str_equal (words[0], "interleaved") ? "layout=dp=8 pp=4 vpp=2 ep=8" : "layout=dp=8 pp=4 ep=8",
                  "seq-len=2048", "global-batch=64", "zero=1", "set=model.shared_ffn=768", word, more, words[1] != NULL ? words[1] : NULL, NULL);
}

static uint32_t
count_weight_gradients (const PodProgram *program, const PodOpBlock *block)
{
  uint32_t n = 0;

  for (uint32_t i = block->first_op; i < block->first_op + block->n_ops; i++)
    n += g_str_has_suffix (g_array_index (program->ops, PodOp, i).name, " dW") ? 1 : 0;
  return n;
}

START_TEST (test_schedules)
{
  g_autoptr (PodRun) run = run_schedule (schedules[_i], "fold=auto");
  const PodProgram *program = run->program;
  uint32_t n_gradients = 0;

  for (guint c = 0; c < program->classes->len; c++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, c);
      int64_t left[64] = { 0 };

      for (guint s = 0; s < class->steps->len; s++)
        {
          const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, g_array_index (class->steps, PodOpStep, s).block);

          n_gradients += count_weight_gradients (program, block);
          for (uint32_t i = block->first_op; i < block->first_op + block->n_ops; i++)
            for (uint32_t e = 0; e < g_array_index (program->ops, PodOp, i).n_effects; e++)
              {
                const PodEffect *effect = &g_array_index (program->effects, PodEffect, g_array_index (program->ops, PodOp, i).first_effect + e);

                left[effect->label] += effect->bytes;
              }
        }
      for (guint l = 0; l < program->labels->len; l++)
        ck_assert_msg (left[l] == 0, "%s: %ld bytes of %s stay", schedules[_i], (long) left[l], g_array_index (program->labels, PodBufferLabel, l).name);
    }
  /* a layer has qkv, attention out, two of experts, two of shared experts, the router; the head one: for each of 8 microbatches */
  ck_assert_uint_eq (n_gradients, 8 * (16 * 7 + 1));
}
END_TEST

static const char *const woven_schedules[][2] = { { "1f1b", "dualpipe" }, { "interleaved", "interleaved overlap-ep=true" } };

START_TEST (test_weaving_hides)
{
  g_autoptr (PodRun) plain = run_schedule (woven_schedules[_i][0], "fold=auto");
  g_autoptr (PodRun) woven = run_schedule (woven_schedules[_i][1], "fold=auto");

  ck_assert (woven->exec->breakdown.exposed_ps[POD_AXIS_EP] < plain->exec->breakdown.exposed_ps[POD_AXIS_EP]);
}
END_TEST

START_TEST (test_load)
{
  static const char *const loads[][2] = {
    { "expert-imbalance=1", "expert-imbalance=1.5" }, { "expert-imbalance=1.5", "expert-imbalance=3" }, { "capacity-factor=1", "capacity-factor=1.25" },
    { "capacity-factor=0.5", "capacity-factor=dropless" }, { "expert-imbalance=zipf:0.2", "expert-imbalance=zipf:1" },
  };
  g_autoptr (PodRun) less = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=4", "seq-len=4096", "global-batch=32", "layout=fsdp=32 ep=16", loads[_i][0], NULL);
  g_autoptr (PodRun) more = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=4", "seq-len=4096", "global-batch=32", "layout=fsdp=32 ep=16", loads[_i][1], NULL);
  g_autoptr (PodRun) even = run_job ("topology=h100:8x4", "model=qwen3-30b", "layers=4", "seq-len=4096", "global-batch=32", "layout=fsdp=32 ep=16", "expert-imbalance=zipf:0", NULL);

  ck_assert_msg (less->exec->time_ps < more->exec->time_ps, "%s: %ld, %s: %ld", loads[_i][0], (long) less->exec->time_ps, loads[_i][1], (long) more->exec->time_ps);
  ck_assert_double_eq_tol (even->job.expert_load, 1, 1e-12);
}
END_TEST

/* What does not divide is refused with its numbers. */
static const struct
{
  const char *layout;
  const char *more;
  const char *message;
} refusals[] = {
  { "dp=16 ep=16", "zero=0", "expert count (8) is not a multiple of ep (16)" },
  { "dp=16 etp=5", "zero=0", "width of an expert (14336) is not a multiple of etp (5)" },
  { "dp=4 pp=4 ep=8", "zero=0", "devices of a stage (tp x cp x dp x fsdp) (4) is not a multiple of ep x etp (8)" },
  { "dp=2 tp=8 ep=8", "sequence-parallel=false", "would route the same tokens" },
  { "dp=16 ep=8", "expert-imbalance=4.5", "from 1 to 4 with ep=8" },
  { "dp=16 ep=8", "expert-imbalance=0.5", "from 1 to 4 with ep=8" },
  { "dp=16 ep=8", "capacity-factor=0", "--capacity-factor: must be above 0" },
  { "dp=16 ep=8", "dispatch-dtype=fp4", "--dispatch-dtype: fp4 is not modelled" },
};

START_TEST (test_refusals)
{
  g_autofree char *layout = g_strdup_printf ("layout=%s", refusals[_i].layout);
  const char *words[] = { "topology=h100:8x2", "model=mixtral-8x7b", "seq-len=4096", "global-batch=16", layout, refusals[_i].more, NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (PodRun) run = run_words (words, &error);

  ck_assert (run == NULL);
  ck_assert_msg (strstr (error->message, refusals[_i].message) != NULL, "%s", error->message);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("moe");
  TCase *machine = tcase_create ("machines");
  TCase *other = tcase_create ("properties");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (machine, 120);
  tcase_set_timeout (other, 120);
  tcase_add_loop_test (machine, test_folded_is_unfolded, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (machine, test_ideal_and_bound_are_below, 0, G_N_ELEMENTS (machines));
  tcase_add_loop_test (other, test_grid, 0, G_N_ELEMENTS (grids));
  tcase_add_loop_test (other, test_weights, 0, 4);
  tcase_add_test (other, test_bytes);
  tcase_add_test (other, test_destinations);
  tcase_add_test (other, test_host);
  tcase_add_test (other, test_activations);
  tcase_add_loop_test (other, test_schedules, 0, G_N_ELEMENTS (schedules));
  tcase_add_loop_test (other, test_weaving_hides, 0, G_N_ELEMENTS (woven_schedules));
  tcase_add_loop_test (other, test_load, 0, 5);
  tcase_add_loop_test (other, test_refusals, 0, G_N_ELEMENTS (refusals));
  suite_add_tcase (suite, machine);
  suite_add_tcase (suite, other);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
