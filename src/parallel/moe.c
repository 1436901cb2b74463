#include "parallel/moe-private.h"

#include <math.h>

#include "base/error.h"

/* Tokens of one microbatch and layer, on one rank. */
typedef struct
{
  const PodModel *model;
  double own;          /* tokens that this rank routes: its part of the residual stream */
  double sent;         /* copies that leave by dispatch (and come back), as the busiest rank gets them */
  double computed;     /* copies that its experts multiply: those of all ranks that share their width */
  uint64_t n_local;    /* experts here */
  uint64_t width;      /* of an expert, on this rank */
  uint64_t n_in;       /* matrices before the activation */
  double out_bytes;    /* of a value on its way to the experts */
  double back_bytes;   /* and on its way back */
} Routed;

/* FP8 tokens carry an fp32 scale for each 128 values (DeepSeek-V3, arXiv 2412.19437, section 3.3.2). */
static double
dispatch_bytes_per_value (PodDtype dtype)
{
  return pod_dtype_bytes (dtype) + (dtype == POD_DTYPE_FP8 ? 4.0 / 128 : 0);
}

static Routed
routed_of (const PodJob *job)
{
  const PodLayout *layout = &job->layout;
  const PodModel *model = job->model;
  Routed r = { .model = model,
               .own = (double) job->batch.micro_batch * (double) job->batch.seq_len / layout->degree[POD_AXIS_CP] / layout->degree[POD_AXIS_TP],
               .n_local = model->n_experts / layout->ep,
               .width = model->moe_ffn / layout->etp,
               .n_in = model->is_ffn_gated ? 2 : 1,
               .out_bytes = dispatch_bytes_per_value (job->dispatch_dtype),
               .back_bytes = MAX (pod_dtype_bytes (pod_job_activation_dtype (job)), pod_dtype_bytes (POD_DTYPE_BF16)) };

  r.sent = r.own * (double) model->top_k * job->expert_load;
  r.computed = r.sent * layout->etp;
  return r;
}

static double
expert_params (const PodModel *model)
{
  const double n_in = model->is_ffn_gated ? 2 : 1;

  return (n_in + 1) * (double) model->hidden * (double) model->moe_ffn
         + (model->has_expert_bias ? n_in * (double) model->moe_ffn + (double) model->hidden : 0);
}

static double
router_params (const PodModel *model)
{
  const double experts = (double) model->n_experts;

  return (double) model->hidden * experts + (model->has_router_bias ? experts : 0) + (model->has_router_scales ? (double) model->hidden + experts : 0);
}

double
pod_moe_model_params (const PodModel *model)
{
  return (double) model->n_experts * expert_params (model) + router_params (model);
}

void
pod_moe_params (const PodEmitter *emitter, PodMoeParams *out)
{
  const PodLayout *layout = &emitter->job->layout;
  const PodModel *model = emitter->job->model;

  out->experts = (double) model->n_experts * expert_params (model) / layout->ep / layout->etp;
  out->router = router_params (model);
}

double
pod_moe_saved_bytes (const PodEmitter *emitter)
{
  const Routed r = routed_of (emitter->job);
  const double operand = emitter->job->is_quantised ? pod_dtype_bytes (emitter->job->dtype) : emitter->element_bytes;
  const double width = (double) r.width;
  const double clamped = r.model->has_clamped_activation && emitter->job->runs_experts_by_op ? emitter->element_bytes * (double) r.n_in * width : 0;

  return r.computed * (clamped + operand * ((double) r.model->hidden + width) + emitter->element_bytes * (double) r.n_in * width) + 4 * r.own * (double) r.model->n_experts;
}

void
pod_job_moe_facts (const PodJob *job, PodMoeFacts *out)
{
  const Routed r = routed_of (job);
  const double values = r.sent * (double) r.model->hidden;
  uint32_t grid[POD_N_EXPERT_AXES];

  pod_layout_expert_grid (&job->layout, grid);
  *out = (PodMoeFacts){ .n_local = r.n_local,
                        .n_copies = (uint64_t) grid[POD_EXPERT_FSDP] * grid[POD_EXPERT_DP],
                        .n_shards = grid[POD_EXPERT_FSDP],
                        .tokens_per_expert = r.computed / (double) r.n_local,
                        .dispatch_bytes = values * r.out_bytes,
                        .combine_bytes = values * r.back_bytes,
                        .expert_params = (double) r.n_local * expert_params (r.model) / job->layout.etp };
}

double
pod_moe_step_bytes (const PodJob *job)
{
  const Routed r = routed_of (job);
  double n_layers = 0;

  for (uint64_t i = 0; i < job->model->n_layers; i++)
    n_layers += job->model->kinds[job->model->layer_kind[i]].is_moe ? 1 : 0;
  return 2 * r.sent * (double) r.model->hidden * (r.out_bytes + r.back_bytes) * n_layers / job->layout.degree[POD_AXIS_PP] * (double) pod_job_n_microbatches (job);
}

static uint32_t
add_grid_axis (PodEmitter *emitter, const PodMesh *mesh, PodExpertAxis expert_axis, PodAxis axis, const char *name)
{
  if (mesh->expert_degree[expert_axis] == 1)
    return POD_NO_COMM;
  return pod_builder_add_communicator (&emitter->builder, pod_mesh_expert_communicator (mesh, expert_axis, axis, name));
}

/* Node-limited routing: the groups within nodes and across them, where a group spans several nodes. */
static bool
split_by_node (PodEmitter *emitter, const PodMesh *mesh, GError **error)
{
  PodExperts *experts = &emitter->experts;
  g_autoptr (PodCommunicator) whole = pod_mesh_expert_communicator (mesh, POD_EXPERT_EP, POD_AXIS_EP, "ep");
  PodCommunicator *inside;
  PodCommunicator *across;

  if (mesh->topology->fabric == POD_FABRIC_TORUS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--route-nodes is for switched machines: %s is a torus, whose hosts share no links of their own", mesh->topology->name);
      return false;
    }
  if (!pod_mesh_split_by_node (mesh, whole, &inside, &across))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--route-nodes: the nodes of %s do not share the groups of ep=%u evenly", mesh->topology->name, mesh->layout.ep);
      return false;
    }
  experts->n_nodes = across->group_size;
  if (experts->n_nodes > 1)
    {
      experts->across_comm = pod_builder_add_communicator (&emitter->builder, across);
      if (inside->group_size > 1)
        experts->inside_comm = pod_builder_add_communicator (&emitter->builder, g_steal_pointer (&inside));
    }
  else
    pod_communicator_free (across);
  pod_communicator_free (inside);
  return true;
}

bool
pod_moe_init (PodEmitter *emitter, const PodMesh *mesh, GError **error)
{
  PodExperts *experts = &emitter->experts;

  *experts = (PodExperts){ .inside_comm = POD_NO_COMM, .across_comm = POD_NO_COMM, .ep_comm = POD_NO_COMM, .etp_comm = POD_NO_COMM, .fsdp_comm = POD_NO_COMM, .dp_comm = POD_NO_COMM };
  experts->fsdp = mesh->expert_degree[POD_EXPERT_FSDP];
  experts->dp = mesh->expert_degree[POD_EXPERT_DP];
  if (emitter->job->model->n_experts == 0)
    return true;
  experts->etp_comm = add_grid_axis (emitter, mesh, POD_EXPERT_ETP, POD_AXIS_EP, "etp");
  experts->fsdp_comm = add_grid_axis (emitter, mesh, POD_EXPERT_FSDP, POD_AXIS_FSDP, "fsdp of experts");
  experts->dp_comm = add_grid_axis (emitter, mesh, POD_EXPERT_DP, POD_AXIS_DP, "dp of experts");
  if (emitter->job->route_nodes > 0 && mesh->layout.ep > 1 && !split_by_node (emitter, mesh, error))
    return false;
  if (experts->across_comm == POD_NO_COMM)
    experts->ep_comm = add_grid_axis (emitter, mesh, POD_EXPERT_EP, POD_AXIS_EP, "ep");
  return true;
}

static uint32_t
collective (PodPass *pass, const char *name, PodStream stream, uint32_t comm, PodCollectiveKind kind, double bytes, uint32_t after)
{
  PodEmitter *emitter = pass->emitter;
  uint32_t op;

  if (comm == POD_NO_COMM)
    return after;
  op = pod_builder_collective (&emitter->builder, pass->phase, pass->unit->layer, name, stream, comm, kind, (uint64_t) llround (bytes));
  pod_builder_depend (&emitter->builder, op, after);
  return op;
}

/* Where the copies are once they have been on their way. */
typedef struct
{
  uint32_t across; /* the op that ends last of each way, POD_NO_OP none */
  uint32_t inside;
} Travel;

/* Of @n places that hold equally many of @n_experts experts, those that have one of a token's @top_k or more, which are drawn evenly: a
 * place is missed with probability C(E - E/n, k) / C(E, k). */
static double
places_hit (double n, double top_k, double n_experts)
{
  double missed = 1;

  for (double i = 0; i < top_k; i++)
    missed *= MAX (0, n_experts - n_experts / n - i) / (n_experts - i);
  return n * (1 - missed);
}

/* Of @n places those that a token's copies go to, by the model's own routing and no more than @limit of them. Group-limited routing first
 * draws groups of experts, then experts of these (DeepSeek-V3, arXiv 2412.19437, 2.1.2). */
static double
places_of (const PodModel *model, double n, double limit)
{
  const double groups = (double) model->n_expert_groups;
  const double top = (double) model->top_groups;
  double within = n;

  if (groups > 1 && top > 0 && top < groups)
    within = n < groups ? places_hit (n, top, groups) : n * top / groups;
  within = MIN (within, limit);
  return places_hit (within, (double) model->top_k, (double) model->n_experts * within / n);
}

/* Nodes that a token goes to. The book counts as many as there can be. */
static double
nodes_hit (const PodJob *job, double n_nodes)
{
  const double limit = MIN (n_nodes, (double) job->route_nodes);

  return job->draws_experts ? places_of (job->model, n_nodes, limit) : MIN (limit, (double) job->model->top_k);
}

/* What is left of a rank's copies where a rank gets a token once, however many of its experts it has: of ranks on @n_nodes nodes. */
static double
once_ratio (const PodJob *job, double n_nodes)
{
  const double ep = job->layout.ep;

  if (job->route_nodes == 0 || !job->draws_experts)
    return 1;
  return places_of (job->model, ep, ep * MIN (1, (double) job->route_nodes / n_nodes)) / (double) job->model->top_k;
}

/* All-to-all over ep. With node-limited routing a token goes once to each node of its experts, over the rank at the same place
 * there, which hands on the copies of its node while more come in (DeepSeek-V3, section 3.2.2): both move at once. */
static Travel
travel (PodPass *pass, const Routed *r, const char *name, double value_bytes, uint32_t after)
{
  const PodExperts *experts = &pass->emitter->experts;
  const PodJob *job = pass->emitter->job;
  const double token_bytes = (double) r->model->hidden * value_bytes;
  Travel done = { after, POD_NO_OP };

  if (experts->across_comm == POD_NO_COMM)
    {
      done.across = collective (pass, name, POD_STREAM_EP, experts->ep_comm, POD_ALL_TO_ALL, r->sent * once_ratio (job, 1) * token_bytes, after);
      return done;
    }
  done.across = collective (pass, name, POD_STREAM_EP, experts->across_comm, POD_ALL_TO_ALL, r->sent / (double) r->model->top_k * nodes_hit (job, experts->n_nodes) * token_bytes, after);
  if (experts->inside_comm != POD_NO_COMM)
    done.inside = collective (pass, pod_builder_join (&pass->emitter->builder, name, "in node"), POD_STREAM_EP_NODE, experts->inside_comm, POD_ALL_TO_ALL,
                              r->sent * once_ratio (job, experts->n_nodes) * token_bytes, after);
  return done;
}

/* A buffer of copies, from the start of @from to the end of @until. */
static void
hold (PodPass *pass, double bytes, uint32_t from, uint32_t until)
{
  PodEmitter *emitter = pass->emitter;

  pod_builder_alloc (&emitter->builder, from, emitter->label_routed, bytes);
  pod_builder_free_buffer (&emitter->builder, until, emitter->label_routed, bytes);
}

static bool
travels (const PodPass *pass)
{
  return pass->emitter->experts.ep_comm != POD_NO_COMM || pass->emitter->experts.across_comm != POD_NO_COMM;
}

/* To the experts: from @ready, the op that laid the copies out. */
static Travel
dispatch (PodPass *pass, const Routed *r, const char *name, uint32_t ready)
{
  const double bytes = r->sent * (double) r->model->hidden;
  Travel done = travel (pass, r, name, r->out_bytes, ready);

  if (travels (pass))
    hold (pass, bytes * r->out_bytes, ready, done.across);
  if (pass->emitter->experts.etp_comm != POD_NO_COMM)
    {
      uint32_t gather = collective (pass, pod_builder_join (&pass->emitter->builder, name, "all-gather over etp"), POD_STREAM_EP, pass->emitter->experts.etp_comm, POD_ALL_GATHER, r->computed * (double) r->model->hidden * r->out_bytes, done.across);

      pod_builder_depend (&pass->emitter->builder, gather, done.inside);
      done.across = gather;
    }
  return done;
}

/* Back from them: from @ready, the op that made the results, which stay until they are gone. */
static Travel
combine (PodPass *pass, const Routed *r, const char *name, uint32_t ready)
{
  const char *scatter_name = pod_builder_join (&pass->emitter->builder, name, "reduce-scatter over etp");
  uint32_t whole = collective (pass, scatter_name, POD_STREAM_EP, pass->emitter->experts.etp_comm, POD_REDUCE_SCATTER, r->computed * (double) r->model->hidden * r->back_bytes, ready);
  Travel done = travel (pass, r, name, r->back_bytes, whole);

  if (done.across != ready)
    hold (pass, r->computed * (double) r->model->hidden * r->back_bytes, ready, done.across);
  return done;
}

/* What comes next waits for all of it. */
static void
wait_for (PodPass *pass, uint32_t op, const Travel *done)
{
  pod_builder_depend (&pass->emitter->builder, op, done->across);
  pod_builder_depend (&pass->emitter->builder, op, done->inside);
}

/* The host's time for a launch comes from layers that launch some 95 kernels where there are 55 here (docs/model/step-losses.md): what
 * @n_kernels of their kind are in launches. */
static uint64_t
launches (uint64_t n_kernels)
{
  return (n_kernels * 55 + 94) / 95;
}

/* A product of each expert here with its copies: FLOPs and bytes of the copies there are, the shape of experts that got equally
 * many. Of fewer copies than experts each is an expert's own. */
typedef struct
{
  const char *name;
  uint64_t rows; /* the weight: rows x columns */
  uint64_t columns;
} Grouped;

static uint64_t
n_busy (const Routed *r)
{
  return MAX (1, MIN (r->n_local, (uint64_t) llround (r->computed)));
}

/* What a weight's gradient is written in, as linear layers write theirs. */
static double
grad_bytes (const PodEmitter *emitter)
{
  const double bytes = pod_dtype_bytes (emitter->keeps_grads_whole ? emitter->job->grad_dtype : pod_job_activation_dtype (emitter->job));

  return emitter->accumulates ? 2 * bytes : bytes;
}

/* The kernel as of the copies that there are. */
static void
make_exact (const Routed *r, PodKernel *kernel)
{
  kernel->flops *= r->computed / ((double) n_busy (r) * ceil (r->computed / (double) n_busy (r)));
}

/* [copies, k] x [k, n] */
static void
multiply (PodPass *pass, const Routed *r, const char *name, uint64_t n, uint64_t k)
{
  const PodEmitter *emitter = pass->emitter;
  const PodDtype dtype = emitter->job->dtype;
  const uint64_t m = (uint64_t) ceil (r->computed / (double) n_busy (r));
  PodKernel kernel = pod_kernel_matmul (n_busy (r), m, n, k, dtype, pod_dtype_bytes (dtype), pod_dtype_bytes (dtype), emitter->element_bytes);

  make_exact (r, &kernel);
  kernel.n_launches = launches (kernel.batch); /* one matmul of each expert: TransformerEngine's GroupedLinear */
  pass->value = pod_pass_compute (pass, name, true, &kernel);
  pod_builder_depend (&pass->emitter->builder, pass->value, pass->expert_weights);
}

/* An operand of quantised matmuls, @width values of each copy, as linear layers cast theirs; copies that travel so are cast. */
static void
cast (PodPass *pass, const Routed *r, const char *name, uint64_t width, bool has_travelled)
{
  const PodJob *job = pass->emitter->job;
  const double elements = r->computed * (double) width;
  const double read = elements * pass->emitter->element_bytes;

  if (job->is_quantised && !(has_travelled && job->dispatch_dtype == job->dtype))
    pod_pass_vector (pass, name, 2 * elements, job->has_amax_pass ? 2 * read : read, 2 * elements * pod_dtype_bytes (job->dtype));
}

/* Of the weight's gradient [rows, copies] x [copies, columns], what the columns side is: the gradient of what it put out. */
static double
kept_bytes (const PodPass *pass, const Routed *r, const Grouped *weight)
{
  return r->computed * (double) weight->columns * pod_dtype_bytes (pass->emitter->job->dtype);
}

/* The weight's gradient, waiting for pass->value: now, or (pass->part) in a later block, up to which both sides are kept, the
 * gradient from @kept_from on. Returns the last op that needs them here. */
static uint32_t
multiply_gradient (PodPass *pass, const Routed *r, const Grouped *weight, uint32_t kept_from)
{
  PodEmitter *emitter = pass->emitter;
  const uint64_t k = (uint64_t) ceil (r->computed / (double) n_busy (r));
  const char *name = pod_builder_join (&emitter->builder, weight->name, "dW");
  const double operand = pod_dtype_bytes (emitter->job->dtype);
  PodKernel kernel = pod_kernel_matmul (n_busy (r), weight->rows, weight->columns, k, emitter->job->dtype, operand, operand, grad_bytes (emitter));
  uint32_t op;

  if (emitter->job->lora_rank > 0) /* frozen */
    return pass->value;
  if (pass->part != POD_PART_BOTH)
    pass->kept_input_bytes += r->computed * (double) weight->rows * operand;
  if (pass->part == POD_PART_INPUT)
    {
      pod_builder_alloc (&emitter->builder, kept_from, emitter->label_kept_grads, kept_bytes (pass, r, weight));
      return pass->value;
    }
  make_exact (r, &kernel);
  kernel.is_transposed = true;
  kernel.n_launches = launches (kernel.batch);
  op = pod_pass_weight_compute (pass, name, true, &kernel);
  if (pass->part == POD_PART_WEIGHT)
    pod_builder_free_buffer (&emitter->builder, op, emitter->label_kept_grads, kept_bytes (pass, r, weight));
  return op;
}

static void
grouped_weights (const Routed *r, Grouped out[2])
{
  out[0] = (Grouped){ "experts in", r->model->hidden, r->width * r->n_in };
  out[1] = (Grouped){ "experts out", r->width, r->model->hidden };
}

static uint64_t
shared_width (const PodPass *pass)
{
  return pod_layout_dense_ffn (pass->emitter->job->model, pass->unit->shape) / pass->emitter->job->layout.degree[POD_AXIS_TP];
}

/* Probabilities of all experts for each token, and the top_k of them: logits in fp32. */
static PodKernel
router_kernel (const PodPass *pass, const Routed *r, uint64_t m, uint64_t n, uint64_t k, double in_bytes, double out_bytes)
{
  const PodDtype dtype = pod_job_activation_dtype (pass->emitter->job);

  return pod_kernel_matmul (1, m, n, k, pod_dtype_bytes (dtype) < 2 ? POD_DTYPE_BF16 : dtype, in_bytes, r->back_bytes, out_bytes);
}

static void
router_forward (PodPass *pass, const Routed *r)
{
  const double logits = r->own * (double) r->model->n_experts;
  PodKernel kernel = router_kernel (pass, r, (uint64_t) r->own, r->model->n_experts, r->model->hidden, pass->emitter->element_bytes, 4);
  uint32_t op = pod_pass_compute (pass, "router", false, &kernel);

  pod_builder_depend (&pass->emitter->builder, op, pass->weights);
  pass->value = op;
  pod_pass_vector (pass, "router top-k", 5 * logits, 4 * logits, 4 * logits + 8 * r->own * (double) r->model->top_k);
}

/* The router's weight gradient is a sum over the ranks that hold other tokens: it is reduced with those of the other matrices. */
static void
router_weight_gradient (PodPass *pass, const Routed *r)
{
  PodEmitter *emitter = pass->emitter;
  const double kept = 4 * r->own * (double) r->model->n_experts; /* the logits' gradients */
  PodKernel kernel = router_kernel (pass, r, r->model->hidden, r->model->n_experts, (uint64_t) r->own, emitter->element_bytes, grad_bytes (emitter));
  uint32_t op;

  if (emitter->job->lora_rank > 0) /* frozen */
    return;
  if (pass->part != POD_PART_BOTH && shared_width (pass) == 0) /* else kept for the shared experts */
    pass->kept_input_bytes += r->own * (double) r->model->hidden * emitter->element_bytes;
  if (pass->part == POD_PART_INPUT)
    {
      pod_builder_alloc (&emitter->builder, pass->value, emitter->label_kept_grads, kept);
      return;
    }
  op = pod_pass_weight_compute (pass, "router dW", false, &kernel);
  if (pass->part == POD_PART_WEIGHT)
    pod_builder_free_buffer (&emitter->builder, op, emitter->label_kept_grads, kept);
}

static void
router_backward (PodPass *pass, const Routed *r)
{
  const double logits = r->own * (double) r->model->n_experts;
  PodKernel dx = router_kernel (pass, r, (uint64_t) r->own, r->model->hidden, r->model->n_experts, 4, pass->emitter->element_bytes);

  pod_pass_vector (pass, "router backward", 5 * logits, 8 * logits, 4 * logits);
  pass->value = pod_pass_compute (pass, "router dX", false, &dx);
  pass->gathered = POD_NO_OP;
  router_weight_gradient (pass, r);
}

/* What the gradients of router and shared experts are reduced over, as a linear layer's with whole inputs. */
static void
derive_gradients (PodPass *pass)
{
  const PodEmitter *emitter = pass->emitter;
  PodSharding xt = pod_sharding ("IT", 0, emitter->token_axes);
  PodSharding dy = pod_sharding ("TO", emitter->token_axes, 0);
  PodSharding grad = pod_sharding ("IO", emitter->fsdp_axes | emitter->grad_axes, 0);
  PodShardedMatmul comm;

  if (!pod_sharded_matmul (&xt, &dy, &grad, &comm, NULL))
    g_error ("shardings of the router");
  pass->grad_scatter |= comm.reduce_scatter & ~emitter->tp_axes;
  pass->grad_all_reduce |= comm.all_reduce & ~emitter->tp_axes;
}

static void
shared_linears (const PodPass *pass, const Routed *r, PodLinear out[2])
{
  const uint64_t width = shared_width (pass);

  out[0] = (PodLinear){ "shared in", r->model->hidden, width * r->n_in, POD_TP_COLUMN };
  out[1] = (PodLinear){ "shared out", width, r->model->hidden, POD_TP_ROW };
}

/* Every token's part of the layer, from @input; POD_NO_OP where there is none. */
static uint32_t
shared_forward (PodPass *pass, const Routed *r, uint32_t input)
{
  PodLinear linears[2];

  if (shared_width (pass) == 0)
    return POD_NO_OP;
  shared_linears (pass, r, linears);
  pass->value = input;
  pass->gathered = POD_NO_OP;
  pod_linear_forward (pass, &linears[0], true);
  pod_pass_activation (pass, pass->emitter->tokens, shared_width (pass), false);
  pod_linear_forward (pass, &linears[1], true);
  return pass->value;
}

static uint32_t
shared_backward (PodPass *pass, const Routed *r, uint32_t gradient)
{
  PodLinear linears[2];

  if (shared_width (pass) == 0)
    return POD_NO_OP;
  shared_linears (pass, r, linears);
  pass->value = gradient;
  pass->gathered = POD_NO_OP;
  pod_linear_backward (pass, &linears[1], true);
  pod_pass_activation (pass, pass->emitter->tokens, shared_width (pass), true);
  pod_linear_backward (pass, &linears[0], true);
  return pass->value;
}

/* Copies that came from other ranks, expert by expert of each, are laid out anew for several experts here, and back again; where a rank got
 * each token once, that is what the permutation is. (Megatron-Core's token_dispatcher.py: sort_chunks_by_idxs.) */
static void
sort (PodPass *pass, const Routed *r, const char *name, double value_bytes)
{
  const double bytes = r->computed * (double) r->model->hidden * value_bytes;

  if (travels (pass) && pass->emitter->job->route_nodes == 0 && r->n_local > 1)
    pod_pass_vector (pass, name, 0, bytes, bytes);
}

/* @n_ops ops of an eager framework, a kernel each. */
static void
run_by_op (PodPass *pass, const char *name, double elements, double read_bytes, double write_bytes, uint64_t n_ops)
{
  PodKernel kernel = pod_kernel_vector (elements, elements * read_bytes, elements * write_bytes);

  if (!pass->emitter->job->runs_experts_by_op)
    return;
  kernel.is_op_by_op = true;
  kernel.n_launches = launches (n_ops);
  pass->value = pod_pass_compute (pass, name, false, &kernel);
  pass->gathered = POD_NO_OP;
}

/* Megatron-Core (core_v0.15, fusions/fused_bias_geglu.py) clamps both halves before the fused activation: two clamps, a concatenation;
 * backward two masks of the gradient by what was clamped, and the concatenation of the chunks' gradients. */
static void
clamp (PodPass *pass, const Routed *r, bool is_backward)
{
  const double bytes = pass->emitter->element_bytes;
  const double elements = r->computed * (double) (r->n_in * r->width);

  if (!r->model->has_clamped_activation)
    return;
  if (!is_backward)
    run_by_op (pass, "clamp", elements, 2 * bytes, 2 * bytes, r->n_in + 1);
  else
    run_by_op (pass, "clamp backward", elements, 3 * bytes, 2 * bytes, r->n_in + 1);
}

/* Megatron-Core (core_v0.15, transformer/moe/experts.py, _apply_bias) adds the bias of an expert's last matrix, times the router's weight in
 * fp32, expert by expert: a product, a sum, their concatenation, all fp32, and the cast of that. Backward: casts to fp32 and back, the
 * concatenation of the chunks' gradients, and a product and its sum for each of bias and weight. */
static void
add_biases (PodPass *pass, const Routed *r, bool is_backward)
{
  const double bytes = pass->emitter->element_bytes;
  const double elements = r->computed * (double) r->model->hidden;

  if (!r->model->has_expert_bias)
    return;
  if (!is_backward)
    run_by_op (pass, "experts out bias", elements, bytes + 12, bytes + 12, 2 * n_busy (r) + 2);
  else
    run_by_op (pass, "experts out bias backward", elements, 2 * bytes + 20, 2 * bytes + 12, 5 * n_busy (r) + 2);
}

/* The last op, if any, waits for all that came. */
static void
join (PodPass *pass, const Travel *there)
{
  if (pass->value != there->across)
    wait_for (pass, pass->value, there);
}

/* What came is what flows, once it is in order; quantised matmuls cast it first. */
static void
arrive (PodPass *pass, const Routed *r, bool is_backward, const Travel *there)
{
  pass->value = there->across;
  pass->gathered = POD_NO_OP;
  sort (pass, r, is_backward ? "sort gradients" : "sort", r->out_bytes);
  join (pass, there);
  if (is_backward)
    add_biases (pass, r, true);
  join (pass, there);
  cast (pass, r, is_backward ? "experts out dY cast" : "experts in input cast", r->model->hidden, true);
  join (pass, there);
}

/* Each result comes back to the token's own rank, where they are summed with the shared experts'; the router's weights have
 * been multiplied in with the activation. Run again, it ends with that, as backward needs no result: only a framework that runs whole
 * layers goes on. */
void
pod_moe_forward (PodPass *pass)
{
  const Routed r = routed_of (pass->emitter->job);
  const double token_bytes = (double) r.model->hidden * pass->emitter->element_bytes;
  const double copies = r.own * (double) r.model->top_k * (double) r.model->hidden;
  const uint32_t input = pass->value;
  Grouped weights[2];
  Travel there;
  Travel back;
  uint32_t shared;
  uint32_t op;

  grouped_weights (&r, weights);
  router_forward (pass, &r);
  pass->is_routed = true;
  pod_pass_vector (pass, "permute", 0, r.own * token_bytes, copies * r.out_bytes);
  there = dispatch (pass, &r, "dispatch", pass->value);
  shared = shared_forward (pass, &r, input);
  arrive (pass, &r, false, &there);
  multiply (pass, &r, "experts in", weights[0].columns, weights[0].rows);
  wait_for (pass, pass->value, &there);
  clamp (pass, &r, false);
  pod_pass_activation (pass, r.computed, r.width, false);
  if (!pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_OUTPUT)))
    {
      pass->is_routed = false;
      return;
    }
  cast (pass, &r, "experts out input cast", r.width, false);
  multiply (pass, &r, "experts out", weights[1].columns, weights[1].rows);
  add_biases (pass, &r, false);
  sort (pass, &r, "sort back", r.back_bytes);
  back = combine (pass, &r, "combine", pass->value);
  pass->value = back.across;
  op = pod_pass_vector (pass, "unpermute", 2 * copies, copies * r.back_bytes + (shared != POD_NO_OP ? r.own * token_bytes : 0), r.own * token_bytes);
  wait_for (pass, op, &back);
  pod_builder_depend (&pass->emitter->builder, op, shared);
  hold (pass, r.sent * (double) r.model->hidden * r.back_bytes, back.across, op);
  pass->is_routed = false;
}

/* What an earlier block left. */
static void
weight_gradients (PodPass *pass, const Routed *r, const Grouped weights[2])
{
  shared_backward (pass, r, POD_NO_OP);
  multiply_gradient (pass, r, &weights[1], POD_NO_OP);
  multiply_gradient (pass, r, &weights[0], POD_NO_OP);
  router_weight_gradient (pass, r);
}

void
pod_moe_backward (PodPass *pass)
{
  const Routed r = routed_of (pass->emitter->job);
  const double token_bytes = (double) r.model->hidden * pass->emitter->element_bytes;
  const double copies = r.own * (double) r.model->top_k * (double) r.model->hidden;
  const uint32_t gradient = pass->value;
  Grouped weights[2];
  Travel there;
  Travel back;
  uint32_t shared;
  uint32_t op;
  uint32_t at;

  grouped_weights (&r, weights);
  derive_gradients (pass);
  if (pass->part == POD_PART_WEIGHT)
    {
      weight_gradients (pass, &r, weights);
      return;
    }
  pass->is_routed = true;
  pod_pass_vector (pass, "unpermute backward", 0, r.own * token_bytes, copies * r.out_bytes);
  there = dispatch (pass, &r, "combine backward", pass->value);
  shared = shared_backward (pass, &r, gradient);
  arrive (pass, &r, true, &there);
  multiply (pass, &r, "experts out dX", weights[1].rows, weights[1].columns);
  wait_for (pass, pass->value, &there);
  op = multiply_gradient (pass, &r, &weights[1], there.across);
  if (pass->part == POD_PART_BOTH) /* the gradients that came; else they are kept */
    hold (pass, kept_bytes (pass, &r, &weights[1]), there.across, op);
  pod_pass_activation (pass, r.computed, r.width, true);
  clamp (pass, &r, true);
  cast (pass, &r, "experts in dY cast", weights[0].columns, false);
  multiply (pass, &r, "experts in dX", weights[0].rows, weights[0].columns);
  at = pass->value;
  sort (pass, &r, "sort gradients back", r.back_bytes);
  back = combine (pass, &r, "dispatch backward", pass->value);
  pass->value = at;
  multiply_gradient (pass, &r, &weights[0], pass->value); /* waits for nothing of the way back */
  pass->value = back.across;
  op = pod_pass_vector (pass, "permute backward", copies, copies * r.back_bytes + (shared != POD_NO_OP ? r.own * token_bytes : 0), r.own * token_bytes);
  wait_for (pass, op, &back);
  pod_builder_depend (&pass->emitter->builder, op, shared);
  hold (pass, r.sent * (double) r.model->hidden * r.back_bytes, back.across, op);
  pass->is_routed = false;
  router_backward (pass, &r);
}
