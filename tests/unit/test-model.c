#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/error.h"

static PodModel *
load (const char *name)
{
  g_autoptr (GError) error = NULL;
  PodModel *model = pod_model_load (name, &error);

  ck_assert_msg (model != NULL, "%s", error != NULL ? error->message : name);
  return model;
}

static void
set (PodModel *model, const char *field, uint64_t value)
{
  g_autoptr (GError) error = NULL;
  bool is_set = pod_model_set (model, field, value, &error);

  ck_assert_msg (is_set, "%s", error != NULL ? error->message : field);
}

static const PodLayerKind *
layer (const PodModel *model, uint64_t index)
{
  return &model->kinds[model->layer_kind[index]];
}

/* Every file of workloads/models loads by its name, and is checked. */
START_TEST (every_listed_model_loads)
{
  g_autoptr (GPtrArray) names = pod_model_list ();

  ck_assert_uint_ge (names->len, 60);
  for (guint i = 0; i < names->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);
      g_autoptr (PodModel) model = load (name);

      ck_assert_str_eq (model->name, name);
      ck_assert (model->architecture != NULL && model->architecture[0] != '\0');
      ck_assert (i == 0 || strcmp (g_ptr_array_index (names, i - 1), name) < 0);
    }
}
END_TEST

START_TEST (unknown_name_has_a_suggestion)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) far_error = NULL;

  ck_assert (pod_model_load ("llama3-71b", &error) == NULL);
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_str_eq (error->message,
                    "llama3-71b: no such model, neither a file nor a name in workloads/models; "
                    "did you mean llama3-70b?");
  ck_assert (pod_model_load ("no/such/file", &far_error) == NULL);
  ck_assert_str_eq (far_error->message,
                    "no/such/file: no such model, neither a file nor a name in workloads/models");
}
END_TEST

/* A checkpoint's folder is read by its config.json. */
START_TEST (folder_is_its_config)
{
  g_autofree char *folder = g_dir_make_tmp ("podsim-XXXXXX", NULL);
  g_autofree char *file = g_build_filename (folder, "config.json", NULL);
  g_autofree char *text = NULL;

  ck_assert (g_file_get_contents (POD_SOURCE_DIR "/workloads/models/gpt2.json", &text, NULL, NULL));
  ck_assert (g_file_set_contents (file, text, -1, NULL));
  g_autoptr (PodModel) model = load (folder);
  ck_assert_str_eq (model->architecture, "gpt2");
  ck_assert_str_eq (model->file, file);
  g_unlink (file);
  ck_assert (pod_model_load (folder, NULL) == NULL);
  g_rmdir (folder);
}
END_TEST

START_TEST (mlp_block_is_two_matrices)
{
  g_autoptr (PodModel) model = load ("mlp-block");
  PodParams params;
  PodTokenFlops flops;

  ck_assert_int_eq (model->attention, POD_ATTENTION_NONE);
  ck_assert_uint_eq (model->n_layers, 1);
  ck_assert_uint_eq (model->hidden, 8192);
  ck_assert_uint_eq (layer (model, 0)->ffn, 32768);
  ck_assert_uint_eq (model->vocab, 0);
  ck_assert (!model->is_ffn_gated && !model->has_final_norm && model->norm == POD_NORM_NONE);
  pod_model_params (model, &params);
  ck_assert_uint_eq (params.total, params.ffn);
  pod_model_token_flops (model, 8192, &flops);
  ck_assert (flops.linear == 12.0 * 8192 * 32768); /* 4BDF forward, twice that backward */
  ck_assert (flops.attention_full == 0 && flops.attention_causal == 0);
}
END_TEST

START_TEST (copy_is_its_own)
{
  g_autoptr (PodModel) model = load ("gemma3-27b");
  g_autoptr (PodModel) copy = pod_model_copy (model);

  set (copy, "layers", 6);
  set (copy, "hidden", 64);
  g_ptr_array_set_size (copy->notes, 0);
  ck_assert_uint_eq (model->n_layers, 62);
  ck_assert_uint_eq (model->hidden, 5376);
  ck_assert_uint_ne (model->notes->len, 0);
}
END_TEST

/* Layers after the override: d dense, m MoE, upper case with a window. */
static const struct
{
  const char *name;
  uint64_t n_layers;
  const char *expected;
} patterns[] = {
  { "llama3-70b", 3, "ddd" },
  { "gpt-oss-20b", 5, "MmMmM" },
  { "gemma3-27b", 14, "DDDDDdDDDDDdDD" },
  { "llama4-maverick", 9, "DMDmDMDmD" },
  { "deepseek-v3", 2, "dd" },
  { "deepseek-v3", 5, "dddmm" },
};

static char
letter (const PodLayerKind *kind)
{
  char letter = kind->is_moe ? 'm' : 'd';

  return kind->window != 0 ? g_ascii_toupper (letter) : letter;
}

START_TEST (layers_cut_the_pattern)
{
  g_autoptr (PodModel) model = load (patterns[_i].name);

  set (model, "layers", patterns[_i].n_layers);
  ck_assert_uint_eq (model->n_layers, patterns[_i].n_layers);
  for (uint64_t i = 0; i < model->n_layers; i++)
    ck_assert_int_eq (letter (layer (model, i)), patterns[_i].expected[i]);
}
END_TEST

START_TEST (layers_go_on_with_the_pattern)
{
  g_autoptr (PodModel) deepseek = load ("deepseek-v3");
  g_autoptr (PodModel) gemma = load ("gemma3-27b");
  g_autoptr (PodModel) one = load ("mlp-block");

  set (deepseek, "layers", 200);
  for (uint64_t i = 0; i < 200; i++)
    ck_assert_int_eq (letter (layer (deepseek, i)), i < 3 ? 'd' : 'm');
  set (gemma, "layers", 100);
  for (uint64_t i = 0; i < 100; i++)
    ck_assert_int_eq (letter (layer (gemma, i)), (i + 1) % 6 == 0 ? 'd' : 'D');
  set (one, "layers", 4);
  ck_assert_uint_eq (layer (one, 3)->ffn, 32768);
}
END_TEST

START_TEST (hidden_keeps_a_stated_head_dim)
{
  g_autoptr (PodModel) gpt = load ("gpt3-175b");
  g_autoptr (PodModel) qwen = load ("qwen3-32b");
  g_autoptr (PodModel) llama = load ("llama3-70b");

  set (gpt, "hidden", 9600);
  ck_assert_uint_eq (layer (gpt, 0)->head_dim, 100);
  ck_assert_uint_eq (layer (gpt, 0)->ffn, 38400);
  set (qwen, "hidden", 4096);
  ck_assert_uint_eq (layer (qwen, 0)->head_dim, 128);
  ck_assert_uint_eq (layer (qwen, 0)->ffn, 25600);
  set (llama, "hidden", 4096);
  ck_assert_uint_eq (layer (llama, 0)->head_dim, 64);
  ck_assert_uint_eq (layer (llama, 0)->v_head_dim, 64);
  ck_assert_uint_eq (layer (llama, 0)->ffn, 28672);
  set (llama, "head-dim", 128); /* a stated one from here on */
  set (llama, "hidden", 2048);
  ck_assert_uint_eq (layer (llama, 0)->head_dim, 128);
}
END_TEST

START_TEST (heads_take_mha_along)
{
  const PodModelOverride together[] = { { "heads", 12 }, { "kv_heads", 4 }, { "head_dim", 80 } };
  g_autoptr (GError) error = NULL;
  g_autoptr (PodModel) gpt = load ("gpt3-175b");
  g_autoptr (PodModel) llama = load ("llama3-70b");
  g_autoptr (PodModel) deepseek = load ("deepseek-v3");

  set (gpt, "heads", 64);
  ck_assert_uint_eq (layer (gpt, 0)->kv_heads, 64);
  ck_assert_uint_eq (layer (gpt, 0)->head_dim, 192);
  ck_assert (!pod_model_set (llama, "heads", 4, &error));
  ck_assert_uint_eq (layer (llama, 0)->heads, 64); /* as it was */
  ck_assert (pod_model_set_all (llama, together, G_N_ELEMENTS (together), NULL));
  ck_assert_uint_eq (layer (llama, 0)->heads, 12);
  ck_assert_uint_eq (layer (llama, 0)->kv_heads, 4);
  ck_assert_uint_eq (layer (llama, 0)->head_dim, 80);
  set (deepseek, "heads", 96);
  ck_assert_uint_eq (layer (deepseek, 5)->kv_heads, 96);
  set (deepseek, "qk_nope", 64);
  ck_assert_uint_eq (layer (deepseek, 5)->head_dim, 128);
  set (deepseek, "v_head", 32);
  ck_assert_uint_eq (layer (deepseek, 5)->v_head_dim, 32);
}
END_TEST

START_TEST (other_fields_are_set)
{
  g_autoptr (PodModel) model = load ("gpt-oss-20b");
  g_autoptr (PodModel) deepseek = load ("deepseek-v3");

  set (model, "window", 256);
  ck_assert_uint_eq (layer (model, 0)->window, 256);
  ck_assert_uint_eq (layer (model, 1)->window, 0);
  set (model, "experts", 64);
  set (model, "top-k", 8);
  set (model, "moe_ffn", 1000);
  set (model, "vocab", 4096);
  set (model, "max_positions", 100);
  ck_assert_uint_eq (model->n_experts, 64);
  ck_assert_uint_eq (model->top_k, 8);
  ck_assert_uint_eq (model->moe_ffn, 1000);
  ck_assert_uint_eq (model->vocab, 4096);
  ck_assert_uint_eq (model->max_positions, 100);
  set (deepseek, "shared_experts", 3);
  ck_assert_uint_eq (deepseek->shared_ffn, 3 * 2048);
  set (deepseek, "ffn", 1024);
  ck_assert_uint_eq (layer (deepseek, 0)->ffn, 1024);
  ck_assert_uint_eq (layer (deepseek, 3)->ffn, 0);
  set (deepseek, "q_lora", 0);
  ck_assert_uint_eq (deepseek->q_lora, 0);
}
END_TEST

static const struct
{
  const char *name;
  const char *field;
  uint64_t value;
  const char *message; /* its end, since the check names the file */
} refusals[] = {
  { "llama3-70b", "layer", 3, "model.layer: no such field" },
  { "llama3-70b", "layers", 0, "model.layers=0: layers must be 1 to 10000, got 0" },
  { "llama3-70b", "layers", 10001, "model.layers=10001: layers must be 1 to 10000, got 10001" },
  { "llama3-70b", "hidden", 0, "hidden must be at least 1, got 0" },
  { "llama3-70b", "hidden", 8191,
    "hidden % heads must be 0 where no head_dim is given: 8191 over 64 heads" },
  { "qwen3-32b", "heads", 0, "heads must be at least 1, got 0" },
  { "llama3-70b", "heads", 0,
    "hidden % heads must be 0 where no head_dim is given: 8192 over 0 heads" },
  { "llama3-70b", "kv_heads", 0,
    "kv_heads must be at least 1, got 0 (heads % kv_heads must be 0)" },
  { "llama3-70b", "kv_heads", 5,
    "heads % kv_heads must be 0: 64 heads do not divide into 5 KV heads (remainder 4)" },
  { "llama3-70b", "head_dim", 0, "head_dim must be at least 1, got 0" },
  { "llama3-70b", "ffn", 0, "ffn must be at least 1, got 0" },
  { "llama3-70b", "window", 4096, "model.window=4096: no layer of this model has a window" },
  { "mistral-7b", "window", 0, "model.window=0: a window must be at least 1, got 0" },
  { "llama3-70b", "top_k", 2, "model.top_k=2: this model has no experts; override experts first" },
  { "llama3-70b", "shared_experts", 2,
    "model.shared_experts=2: this model has no experts; override experts first" },
  { "llama3-70b", "kv_lora", 2, "model.kv_lora=2: this model has no MLA" },
  { "llama3-70b", "ffn", UINT64_MAX, "parameters, the limit is 1e18" },
  { "gpt3-175b", "hidden", UINT64_C (96) << 57, "hidden 13835058055282163712 is too large" },
  { "mixtral-8x7b", "ffn", 8,
    "model.ffn=8: no layer of this model is dense; moe_ffn is the width of its experts" },
  { "mixtral-8x7b", "experts", 0, "experts must be at least 1 where layers are MoE, got 0" },
  { "mixtral-8x7b", "experts", 1, "top_k must be 1 to experts (1), got 2" },
  { "mixtral-8x7b", "top_k", 9, "top_k must be 1 to experts (8), got 9" },
  { "mixtral-8x7b", "moe_ffn", 0, "moe_ffn must be at least 1, got 0" },
  { "deepseek-v3", "shared_experts", UINT64_MAX,
    "18446744073709551615 shared experts of width 2048 are too many" },
  { "deepseek-v3", "head_dim", 64,
    "model.head_dim=64: this model has no head_dim: MLA has qk_nope, qk_rope and v_head" },
  { "deepseek-v3", "kv_heads", 64,
    "model.kv_heads=64: this model has no KV heads: MLA's cache is kv_lora + qk_rope wide" },
  { "deepseek-v3", "kv_lora", 0,
    "MLA needs kv_lora, qk_nope + qk_rope and v_head of at least 1, got 0, 128 + 64, 128" },
  { "mlp-block", "heads", 8, "model.heads=8: this model has no attention" },
  { "mlp-block", "kv_heads", 8, "model.kv_heads=8: this model has no KV heads" },
  { "gpt2", "max_positions", 0,
    "max_positions must be at least 1 where positions are learned, got 0" },
};

START_TEST (bad_override_is_refused)
{
  g_autoptr (PodModel) model = load (refusals[_i].name);
  g_autoptr (GError) error = NULL;
  PodParams before;
  PodParams after;

  pod_model_params (model, &before);
  ck_assert (!pod_model_set (model, refusals[_i].field, refusals[_i].value, &error));
  ck_assert_msg (g_str_has_suffix (error->message, refusals[_i].message), "\"%s\"\nnot \"%s\"",
                 error->message, refusals[_i].message);
  pod_model_params (model, &after);
  ck_assert (memcmp (&before, &after, sizeof before) == 0);
}
END_TEST

START_TEST (fields_have_their_help)
{
  unsigned n_fields = 0;

  for (const PodModelField *field = pod_model_field (0); field != NULL;
       field = pod_model_field (++n_fields))
    ck_assert (field->name[0] != '\0' && field->summary[0] != '\0');
  ck_assert_uint_ge (n_fields, 15);
}
END_TEST

#define XML(attributes, attention, rest)                                                           \
  "<model architecture=\"a\" hidden=\"8\" " attributes ">\n<source>s</source>\n"                   \
  "<embedding vocab=\"10\" tied=\"true\"/>\n<attention " attention "/>\n" rest "</model>\n"
#define FFN   "<ffn width=\"16\" gated=\"false\"/>\n"
#define NORMS "<norms kind=\"rms\"/>\n"

/* The message behind the file's name. */
static const struct
{
  const char *text;
  const char *message;
} bad_xml[] = {
  { "<model/>", ":1: " },
  { XML ("", "kind=\"gqa\" heads=\"2\"", FFN NORMS), ":1: " }, /* no layers */
  { XML ("layers=\"-1\"", "kind=\"gqa\" heads=\"2\"", FFN NORMS), ":1: " },
  { XML ("layers=\"NaN\"", "kind=\"gqa\" heads=\"2\"", FFN NORMS), ":1: " },
  { XML ("layers=\"2\" depth=\"2\"", "kind=\"gqa\" heads=\"2\"", FFN NORMS), ":1: " },
  { XML ("layers=\"10001\"", "kind=\"gqa\" heads=\"2\"", FFN NORMS),
    ":1: layers: must be 1 to 10000, got 10001" },
  { XML ("layers=\"2\"", "kind=\"mqa\" heads=\"2\"", FFN NORMS), ":4: " },
  { XML ("layers=\"2\"", "kind=\"gqa\"", FFN NORMS), ":4: heads: missing, attention needs it" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"32\" kv-heads=\"5\" head-dim=\"4\"", FFN NORMS),
    ":4: kv-heads: heads % kv-heads must be 0 and kv-heads at least 1, got 32 heads and 5 KV "
    "heads" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"32\" kv-heads=\"0\" head-dim=\"4\"", FFN NORMS),
    ":4: kv-heads: heads % kv-heads must be 0 and kv-heads at least 1, got 32 heads and 0 KV "
    "heads" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"3\"", FFN NORMS),
    ":4: head-dim: missing, and hidden % heads must be 0 without it: 8 over 3 heads" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"2\" pattern=\"local global\"", FFN NORMS),
    ":4: window: missing, pattern needs it" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"2\" window=\"9\" pattern=\"far\"", FFN NORMS),
    ":4: " },
  { XML ("layers=\"2\"", "kind=\"mla\" heads=\"2\" kv-lora=\"4\"", FFN NORMS),
    ":4: mla needs kv-lora, v-head, and qk-nope or qk-rope" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"2\"",
         FFN "<experts count=\"2\" top-k=\"3\" width=\"4\"/>\n" NORMS),
    ":6: top-k: must be 1 to count (2), got 3" },
  { XML ("layers=\"2\"", "kind=\"gqa\" heads=\"2\"", FFN), ":1: " }, /* no norms */
  { "<!DOCTYPE model []>\n<model/>", ":1: a DOCTYPE is not allowed" },
};

static PodModel *
load_xml (const char *text, char **out_message)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("podsim-XXXXXX", NULL);
  g_autofree char *file = g_build_filename (folder, "model.xml", NULL);
  PodModel *model;

  ck_assert (g_file_set_contents (file, text, -1, NULL));
  model = pod_model_load (file, &error);
  g_unlink (file);
  g_rmdir (folder);
  if (error != NULL)
    {
      ck_assert_msg (g_str_has_prefix (error->message, file), "%s", error->message);
      *out_message = g_strdup (error->message + strlen (file));
    }
  return model;
}

START_TEST (bad_xml_is_refused)
{
  g_autofree char *message = NULL;
  g_autoptr (PodModel) model = load_xml (bad_xml[_i].text, &message);

  ck_assert_msg (model == NULL, "read: %s", bad_xml[_i].text);
  ck_assert_msg (g_str_has_prefix (message, bad_xml[_i].message), "\"%s\"\nnot \"%s\"", message,
                 bad_xml[_i].message);
}
END_TEST

/* All that the schema has, counted by hand: MLA as in test-hf-config (273), biases of kv's rank and
 * of o (3 + 2 + 8), dense 2·8·16 with biases 16 + 8, experts 2·8·6 with biases 6 + 8, four and a
 * shared one of 5, router 32 + 4, two norms of 16, 3 more; embedding norm and last norm 16, table
 * 80, positions 8·7. */
START_TEST (full_xml_is_counted)
{
  g_autofree char *message = NULL;
  g_autoptr (PodModel) model = load_xml (
      "<model architecture=\"a\" hidden=\"8\" layers=\"5\" "
      "extra-params-per-layer=\"3\">\n<source>s</source>\n"
      "<embedding vocab=\"10\" tied=\"true\" max-positions=\"7\" learned-positions=\"true\"/>\n"
      "<attention kind=\"mla\" heads=\"2\" kv-lora=\"3\" qk-nope=\"4\" qk-rope=\"2\" v-head=\"5\" "
      "bias=\"true\""
      " output-bias=\"true\" window=\"9\" pattern=\"local global\"/>\n"
      "<ffn width=\"16\" gated=\"false\" bias=\"true\"/>\n"
      "<experts count=\"4\" top-k=\"2\" width=\"6\" shared=\"1\" shared-width=\"5\" "
      "dense-first=\"1\" every=\"2\""
      " router-bias=\"true\" bias=\"true\"/>\n<norms kind=\"layer\" "
      "embedding=\"true\"/>\n</model>\n",
      &message);
  PodParams params;

  ck_assert_msg (model != NULL, "%s", message);
  for (uint64_t i = 0; i < 5; i++) /* the first dense, then every second MoE */
    ck_assert_int_eq (letter (layer (model, i)), "DdMdM"[i]);
  pod_model_params (model, &params);
  ck_assert_uint_eq (params.total, 5 * (273 + 13 + 3 + 32) + 3 * (256 + 24)
                                       + 2 * (4 * (96 + 14) + 80 + 36) + 32 + 80 + 56);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("model");
  TCase *files = tcase_create ("files");
  TCase *overrides = tcase_create ("overrides");

  tcase_add_test (files, every_listed_model_loads);
  tcase_add_test (files, unknown_name_has_a_suggestion);
  tcase_add_test (files, folder_is_its_config);
  tcase_add_test (files, mlp_block_is_two_matrices);
  tcase_add_test (files, full_xml_is_counted);
  tcase_add_loop_test (files, bad_xml_is_refused, 0, G_N_ELEMENTS (bad_xml));
  suite_add_tcase (suite, files);

  tcase_add_test (overrides, copy_is_its_own);
  tcase_add_loop_test (overrides, layers_cut_the_pattern, 0, G_N_ELEMENTS (patterns));
  tcase_add_test (overrides, layers_go_on_with_the_pattern);
  tcase_add_test (overrides, hidden_keeps_a_stated_head_dim);
  tcase_add_test (overrides, heads_take_mha_along);
  tcase_add_test (overrides, other_fields_are_set);
  tcase_add_loop_test (overrides, bad_override_is_refused, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (overrides, fields_have_their_help);
  suite_add_tcase (suite, overrides);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
