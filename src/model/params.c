#include "model/model.h"

#include "model/model-private.h"

/* Weights of one layer, each part split into what matmuls use and the rest (biases, norms, scales).
 */
typedef struct
{
  uint64_t attention;
  uint64_t attention_rest;
  uint64_t ffn;
  uint64_t ffn_rest;
  uint64_t expert; /* one routed expert */
  uint64_t expert_rest;
  uint64_t shared;
  uint64_t router;
  uint64_t router_rest;
  uint64_t norms;
} LayerCounts;

/* One vector of @width for RMS, weight and bias for LayerNorm. */
static uint64_t
norm_size (PodNorm norm, uint64_t width)
{
  switch (norm)
    {
    case POD_NORM_NONE:
      return 0;
    case POD_NORM_RMS:
      return width;
    case POD_NORM_LAYER:
      return 2 * width;
    }
  g_assert_not_reached ();
}

/* q D x NH, k D x KH, v D x KH', o NH' x D */
static void
count_gqa (const PodModel *model, const PodLayerKind *kind, LayerCounts *out)
{
  uint64_t q = kind->heads * kind->head_dim;
  uint64_t k = kind->kv_heads * kind->head_dim;
  uint64_t v = kind->is_v_from_k ? 0 : kind->kv_heads * kind->v_head_dim;

  out->attention = model->hidden * (q + k + v + kind->heads * kind->v_head_dim);
  if (model->has_attention_bias)
    out->attention_rest += q + k + v;
  if (model->has_qk_norm)
    out->attention_rest += model->is_qk_norm_wide ? q + k : 2 * kind->head_dim;
}

/* q through a rank (or direct), k and v through a rank with the rotary part of k beside it
 * (DeepSeek-V2, arXiv 2405.04434, section 2.1): D x q_lora, q_lora x N(nope + rope), D x (kv_lora +
 * rope), kv_lora x N(nope + v), Nv x D; a norm on each rank. The indexer (DeepSeek-V3.2-Exp
 * inference/model.py): q_lora x heads·dim, D x dim, D x heads and a LayerNorm of dim. */
static void
count_mla (const PodModel *model, const PodLayerKind *kind, LayerCounts *out)
{
  uint64_t q_width = kind->heads * (model->qk_nope + model->qk_rope);
  uint64_t q_input = model->q_lora != 0 ? model->q_lora : model->hidden;

  if (model->q_lora != 0)
    out->attention += model->hidden * model->q_lora;
  out->attention += q_input * q_width;
  out->attention += model->hidden * (model->kv_lora + model->qk_rope);
  out->attention += model->kv_lora * kind->heads * (model->qk_nope + model->v_head);
  out->attention += kind->heads * model->v_head * model->hidden;
  out->attention_rest += model->q_lora + model->kv_lora;
  if (model->has_attention_bias)
    out->attention_rest += model->q_lora + model->kv_lora + model->qk_rope;
  if (model->index_heads != 0)
    {
      out->attention += q_input * model->index_heads * model->index_head_dim;
      out->attention += model->hidden * (model->index_head_dim + model->index_heads);
      out->attention_rest += 2 * model->index_head_dim;
    }
}

static void
count_layer (const PodModel *model, const PodLayerKind *kind, LayerCounts *out)
{
  uint64_t n_in = model->is_ffn_gated ? 2 : 1;

  *out = (LayerCounts){ 0 };
  switch (model->attention)
    {
    case POD_ATTENTION_NONE:
      break;
    case POD_ATTENTION_GQA:
      count_gqa (model, kind, out);
      break;
    case POD_ATTENTION_MLA:
      count_mla (model, kind, out);
      break;
    }
  if (model->attention != POD_ATTENTION_NONE && model->has_output_bias)
    out->attention_rest += model->hidden;
  if (model->has_attention_sinks)
    out->attention_rest += kind->heads;
  out->attention_rest += model->extra_params_per_layer;

  out->ffn = (n_in + 1) * model->hidden * kind->ffn;
  if (model->has_ffn_bias && kind->ffn != 0)
    out->ffn_rest = n_in * kind->ffn + model->hidden;
  if (kind->is_moe)
    {
      out->expert = (n_in + 1) * model->hidden * model->moe_ffn;
      if (model->has_expert_bias)
        out->expert_rest = n_in * model->moe_ffn + model->hidden;
      out->shared = (n_in + 1) * model->hidden * model->shared_ffn;
      if (model->has_shared_gate)
        out->shared += model->hidden;
      out->router = model->hidden * model->n_experts;
      if (model->has_router_bias)
        out->router_rest += model->n_experts;
      if (model->has_router_scales)
        out->router_rest += model->hidden + model->n_experts;
    }
  out->norms = model->norms_per_layer * norm_size (model->norm, model->hidden);
}

/* Parameters of @counts with @n_experts of the routed experts. */
static uint64_t
layer_total (const LayerCounts *counts, uint64_t n_experts)
{
  return counts->attention + counts->attention_rest + counts->ffn + counts->ffn_rest
         + n_experts * (counts->expert + counts->expert_rest) + counts->shared + counts->router
         + counts->router_rest + counts->norms;
}

/* Parameters of one layer of kind @kind, all in the result and those that one token uses (top_k of
 * the routed experts) in @out_active (out) (optional). O(1) */
uint64_t
pod_model_layer_params (const PodModel *model, unsigned kind, uint64_t *out_active)
{
  LayerCounts counts;

  g_return_val_if_fail (kind < model->n_kinds, 0);

  count_layer (model, &model->kinds[kind], &counts);
  if (out_active != NULL)
    *out_active = layer_total (&counts, model->top_k);
  return layer_total (&counts, model->n_experts);
}

/* DeepSeek-V3 (arXiv 2412.19437, 2.2): a module of depth k norms the output of depth k-1 and the
 * embedding of the token k ahead, projects both [2D, D], runs one layer, and norms for the head. */
uint64_t
pod_model_mtp_params (const PodModel *model)
{
  return 2 * model->hidden * model->hidden + 3 * norm_size (model->norm, model->hidden);
}

/* Exact counts by part: norms and biases belong to the part that they serve; of multi-token prediction
 * the modules that train (n_mtp). A model that passed pod_model_check cannot overflow. O(layers) */
void
pod_model_params (const PodModel *model, PodParams *out)
{
  uint64_t idle_experts = 0; /* parameters of experts that a token does not visit */

  *out = (PodParams){ 0 };
  out->embedding = model->vocab * model->hidden;
  out->head = model->is_tied ? 0 : out->embedding;
  if (model->has_learned_positions)
    out->positions = (model->max_positions + model->extra_positions) * model->hidden;
  if (model->has_embedding_norm)
    out->norms += norm_size (model->norm, model->hidden);
  if (model->has_final_norm)
    out->norms += norm_size (model->norm, model->hidden);

  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[i]];
      LayerCounts counts;

      count_layer (model, kind, &counts);
      out->attention += counts.attention + counts.attention_rest;
      out->ffn += counts.ffn + counts.ffn_rest;
      out->experts += model->n_experts * (counts.expert + counts.expert_rest);
      out->shared_experts += counts.shared;
      out->router += counts.router + counts.router_rest;
      out->norms += counts.norms;
      idle_experts += (model->n_experts - model->top_k) * (counts.expert + counts.expert_rest);
    }

  if (model->n_mtp > 0)
    {
      const unsigned last = model->layer_kind[model->n_layers - 1];
      uint64_t active;
      const uint64_t all = pod_model_layer_params (model, last, &active);

      out->mtp = model->n_mtp * (all + pod_model_mtp_params (model));
      idle_experts += model->n_mtp * (all - active);
    }

  out->total = out->embedding + out->positions + out->head + out->attention + out->ffn
               + out->experts + out->shared_experts + out->router + out->norms + out->mtp;
  out->active_with_embedding = out->total - idle_experts;
  out->active = out->active_with_embedding - (model->is_tied ? 0 : out->embedding);
}

double
pod_model_params_estimate (const PodModel *model)
{
  double hidden = (double) model->hidden;
  double moe = 3.0 * hidden * ((double) model->moe_ffn + 2.0);
  double total = 2.0 * (double) model->vocab * hidden
                 + ((double) model->max_positions + (double) model->extra_positions) * hidden
                 + 8.0 * hidden;

  for (uint64_t i = 0; i < model->n_layers + model->n_mtp; i++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[MIN (i, model->n_layers - 1)]];
      double heads = (double) kind->heads;
      double head_dim = (double) kind->head_dim + (double) kind->v_head_dim;

      total += 3.0 * hidden * ((double) kind->ffn + 2.0)
               + (double) model->norms_per_layer * 2.0 * hidden;
      if (model->attention == POD_ATTENTION_GQA)
        total += (hidden + 2.0) * (heads + (double) kind->kv_heads) * head_dim;
      if (model->attention == POD_ATTENTION_MLA)
        total
            += (hidden + 2.0 + (double) model->q_lora) * heads * head_dim
               + ((double) model->kv_lora + (double) model->q_lora + (double) model->qk_rope + 1.0)
                     * (hidden + heads * head_dim)
               + (hidden + (double) model->q_lora + 2.0) * ((double) model->index_heads + 1.0)
                     * ((double) model->index_head_dim + 1.0);
      if (kind->is_moe)
        total += ((double) model->n_experts + 1.0) * (moe + hidden)
                 + 3.0 * hidden * (double) model->shared_ffn;
      total += (double) model->extra_params_per_layer;
    }
  total += (double) model->n_mtp * (2.0 * hidden * hidden + 6.0 * hidden);
  return total;
}

/* Bytes that one token adds to the KV cache over all layers: K and V of every KV head, or with MLA
 * the compressed vector and the rotary key (and the indexer's key). Windows are ignored. O(layers)
 */
double
pod_model_kv_bytes_per_token (const PodModel *model, double bytes_per_element)
{
  double elements = 0.0;

  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[i]];

      switch (model->attention)
        {
        case POD_ATTENTION_NONE:
          break;
        case POD_ATTENTION_GQA:
          elements += (double) kind->kv_heads * (double) (kind->head_dim + kind->v_head_dim);
          break;
        case POD_ATTENTION_MLA:
          elements += (double) (model->kv_lora + model->qk_rope);
          if (model->index_heads != 0)
            elements += (double) model->index_head_dim;
          break;
        }
    }
  return elements * bytes_per_element;
}

/* Mean keys that a query of a causal sequence of @seq_len = T tokens sees, in the convention of
 * kernels' FLOP counts (the area under the diagonal, T/2, not (T+1)/2): full            T / 2
 *   window w < T    the integral of min(i, w) over T queries, / T = w - w^2 / 2T
 *   chunk c < T     floor(T/c) triangles of c and one of the rest r: (floor(T/c) c^2 + r^2) / 2T */
double
pod_model_mean_span (const PodLayerKind *kind, uint64_t seq_len)
{
  double length = (double) seq_len;
  double window = (double) kind->window;

  if (kind->window == 0 || kind->window >= seq_len)
    return length / 2.0;
  if (kind->is_chunked)
    {
      uint64_t n_chunks = seq_len / kind->window;
      double rest = (double) (seq_len % kind->window);

      return ((double) n_chunks * window * window + rest * rest) / (2.0 * length);
    }
  return window - window * window / (2.0 * length);
}

/* FLOPs of one token of a training sequence of @seq_len, forward and backward (3 x forward), by
 * convention: linear            6 x weights of the matmuls that it passes, the logits included even
 * when tied attention_full    3 x 2 T N (qk_dim + v_dim) a layer, = 12 T N H where both are H
 *   attention_causal  the same with pod_model_mean_span for T
 * The indexer of DSA scores all keys: 3 x 2 T heads dim a layer more, half when causal. A multi-token
 * prediction module is one layer more, its projection and the logits once more. O(layers)
 */
void
pod_model_token_flops (const PodModel *model, uint64_t seq_len, PodTokenFlops *out)
{
  double length = (double) seq_len;
  double weights = (double) model->vocab * (double) model->hidden;
  double index_dim = (double) model->index_heads * (double) model->index_head_dim;
  PodParams params;

  *out = (PodTokenFlops){ 0 };
  weights += (double) model->n_mtp * (weights + 2.0 * (double) model->hidden * (double) model->hidden);
  for (uint64_t i = 0; i < model->n_layers + model->n_mtp; i++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[MIN (i, model->n_layers - 1)]];
      LayerCounts counts;

      count_layer (model, kind, &counts);
      weights += (double) counts.attention + (double) counts.ffn + (double) counts.shared
                 + (double) counts.router + (double) model->top_k * (double) counts.expert;
      if (model->attention != POD_ATTENTION_NONE)
        {
          double dim = (double) kind->heads * (double) (kind->head_dim + kind->v_head_dim);

          out->attention_full += 6.0 * length * (dim + index_dim);
          out->attention_causal
              += 6.0 * (pod_model_mean_span (kind, seq_len) * dim + length / 2.0 * index_dim);
        }
    }

  pod_model_params (model, &params);
  out->linear = 6.0 * weights;
  out->sixnd = 6.0 * (double) params.active_with_embedding;
  out->palm = 6.0 * (double) params.active + out->attention_full;
  out->megatron = out->linear + out->attention_full;
  out->causal = out->linear + out->attention_full / 2.0;
}
