#include "fuzz/fuzz-input.h"

#include "fuzz/ask-model.h"
#include "model/model-private.h"

/* A config.json of Hugging Face or of DeepSeek. */

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_auto (FuzzFile) file = { 0 };
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  fuzz_file_init (&file, data, size);

  g_autoptr (PodModel) model = pod_hf_config_load ("input", file.path, &error);

  fuzz_judge_file (model != NULL, &error, file.path);
  if (model == NULL)
    return 0;

  bool is_good = pod_model_check (model, &error);

  fuzz_judge_file (is_good, &error, file.path);
  if (is_good)
    fuzz_ask_model (model);
  return 0;
}
