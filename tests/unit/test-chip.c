#include "topology/chip.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/xml.h"

static const char *const chip_names[]
    = { "a100",      "a100-40", "b200",    "b300",    "gaudi3",  "gb200",   "gb300",    "h100",
        "h100-pcie", "h200",    "h800",    "mi250x",  "mi300x",  "mi325x",  "mi355x",   "tpu-v2",
        "tpu-v3",    "tpu-v4",  "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x", "trainium2" };

static PodChip *
load (const char *name)
{
  g_autoptr (GError) error = NULL;
  PodChip *chip = pod_chip_load (name, NULL, &error);

  ck_assert_msg (chip != NULL, "%s: %s", name, error != NULL ? error->message : "");
  return chip;
}

/* Our files give every number, with its source, so that no default is taken. */
START_TEST (test_files_are_complete)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodChip) chip = pod_chip_load (chip_names[_i], assumptions, &error);

  ck_assert_msg (chip != NULL, "%s", error != NULL ? error->message : "");
  ck_assert_str_eq (chip->name, chip_names[_i]);
  ck_assert_uint_eq (assumptions->len, chip->note != NULL ? 1 : 0);
  g_autoptr (PodXml) xml = pod_xml_load (chip->file, NULL, &error);
  ck_assert_ptr_nonnull (xml);
  unsigned n_facts = 0;
  for (PodXmlNode *node = pod_xml_child (pod_xml_root (xml), NULL); node != NULL;
       node = pod_xml_next (node, NULL))
    n_facts++;
  ck_assert_uint_eq (chip->sources->len, n_facts);
  ck_assert (chip->peak_flops_per_s[POD_DTYPE_BF16].nominal > 1e13);
  ck_assert (chip->matmul_efficiency > 0.4 && chip->matmul_efficiency <= 1);
}
END_TEST

START_TEST (test_all_chips_are_listed)
{
  g_autoptr (GPtrArray) names = pod_chip_names ();

  for (unsigned i = 0; i < G_N_ELEMENTS (chip_names); i++)
    {
      bool is_listed = false;
      for (unsigned j = 0; j < names->len; j++)
        is_listed = is_listed || strcmp (g_ptr_array_index (names, j), chip_names[i]) == 0;
      ck_assert_msg (is_listed, "%s", chip_names[i]);
    }
}
END_TEST

/* The schema has the facts of the table, in its order. */
START_TEST (test_schema_is_the_table)
{
  g_autofree char *file = pod_data_find ("topologies/chips", "chip.xsd", ".xsd");
  g_autoptr (GError) error = NULL;
  g_autoptr (PodXml) xml = pod_xml_load (file, NULL, &error);
  PodXmlNode *chip = pod_xml_child (pod_xml_root (xml), "element");
  PodXmlNode *all = pod_xml_child (pod_xml_child (chip, "complexType"), "all");
  PodChipFieldInfo info;
  PodChipSurface n_surfaces = 0;
  size_t index = 0;
  g_autofree char *text = NULL;

  ck_assert (g_file_get_contents (file, &text, NULL, NULL));
  for (PodXmlNode *node = pod_xml_child (all, "element"); node != NULL;
       node = pod_xml_next (node, "element"))
    {
      g_autofree char *name = pod_xml_attr (node, "name");
      g_autofree char *type = pod_xml_attr (node, "type");

      if (g_strcmp0 (type, "surface") == 0)
        {
          ck_assert_str_eq (name, pod_chip_surface_name (n_surfaces++));
          continue;
        }
      ck_assert (pod_chip_field (index++, &info));
      ck_assert_str_eq (name, info.name);
      {
        g_autofree char *start = g_strdup_printf ("name=\"%s\"", name);
        g_autofree char *words = g_strdup_printf ("<xs:documentation>%s</xs:documentation>", info.summary);
        const char *at = strstr (text, start);

        at = at != NULL ? strstr (at, "<xs:documentation>") : NULL;
        ck_assert_msg (at != NULL && g_str_has_prefix (at, words), "%s: the schema does not say '%s'", name, info.summary);
      }
    }
  ck_assert (!pod_chip_field (index, &info));
  ck_assert_uint_eq (n_surfaces, POD_N_SURFACES);
}
END_TEST

/* Nominal and book values. The book: "How to Scale Your Model", tpus.md and gpus.md, 2026 edition.
 */
static const struct
{
  const char *chip;
  const char *field;
  double nominal;
  double book;
} fact_cases[] = {
  { "tpu-v3", "peak_bf16", 1.23e14, 1.4e14 },
  { "tpu-v3", "hbm_bandwidth", 9e11, 9e11 },
  { "tpu-v3", "ici_bandwidth", 82e9, 1e11 },
  { "tpu-v4", "peak_bf16", 2.75e14, 2.75e14 },
  { "tpu-v4", "peak_int8", 2.75e14, 2.75e14 },
  { "tpu-v4", "hbm_capacity", 34359738368, 32e9 },
  { "tpu-v4", "hbm_bandwidth", 1.2e12, 1.2e12 },
  { "tpu-v4", "ici_bandwidth", 50e9, 4.5e10 },
  { "tpu-v5e", "peak_bf16", 1.97e14, 1.97e14 },
  { "tpu-v5e", "peak_int8", 3.93e14, 3.94e14 },
  { "tpu-v5e", "hbm_capacity", 17179869184, 16e9 },
  { "tpu-v5e", "hbm_bandwidth", 8.19e11, 8.2e11 },
  { "tpu-v5e", "ici_bandwidth", 50e9, 4.5e10 },
  { "tpu-v5e", "vmem_capacity", 134217728, 134217728 },
  { "tpu-v5e", "vmem_bandwidth", 1.8e13, 1.8e13 },
  { "tpu-v5e", "nic_bandwidth", 3.125e9, 3.125e9 },
  { "tpu-v5p", "peak_bf16", 4.59e14, 4.59e14 },
  { "tpu-v5p", "peak_int8", 9.18e14, 9.18e14 },
  { "tpu-v5p", "peak_vector", 2 * 8 * 128 * 4 * 1.75e9, 2 * 8 * 128 * 4 * 1.75e9 },
  { "tpu-v5p", "hbm_capacity", 103079215104, 96e9 },
  { "tpu-v5p", "hbm_bandwidth", 2.765e12, 2.8e12 },
  { "tpu-v5p", "ici_bandwidth", 100e9, 9e10 },
  { "tpu-v5p", "host_bandwidth", 1.6e10, 1.6e10 },
  { "tpu-v5p", "nic_bandwidth", 6.25e9, 6.25e9 },
  { "tpu-v6e", "peak_bf16", 9.18e14, 9.2e14 },
  { "tpu-v6e", "peak_int8", 1.836e15, 1.84e15 },
  { "tpu-v6e", "hbm_capacity", 34359738368, 32e9 },
  { "tpu-v6e", "hbm_bandwidth", 1.638e12, 1.6e12 },
  { "tpu-v6e", "ici_bandwidth", 100e9, 9e10 },
  { "tpu-v6e", "host_bandwidth", 3.2e10, 3.2e10 },
  { "tpu-v6e", "nic_bandwidth", 1.25e10, 1.25e10 },
  { "tpu-v7x", "peak_bf16", 2.307e15, 2.3e15 },
  { "tpu-v7x", "peak_fp8", 4.614e15, 4.61e15 },
  { "tpu-v7x", "hbm_capacity", 206158430208, 192e9 },
  { "tpu-v7x", "hbm_bandwidth", 7.38e12, 7.4e12 },
  { "tpu-v7x", "ici_bandwidth", 100e9, 9e10 },
  { "a100", "hbm_capacity", 85100068864, 80e9 },
  { "h100", "peak_bf16", 9.89e14, 9.9e14 },
  { "h100", "peak_fp8", 1.979e15, 2e15 },
  { "h100", "peak_int8", 1.979e15, 2e15 },
  { "h100", "hbm_capacity", 84942979072, 80e9 },
  { "h100", "hbm_bandwidth", 3.35e12, 3.4e12 },
  { "h100", "scale_up_bandwidth", 450e9, 450e9 },
  { "h100", "nic_bandwidth", 50e9, 50e9 },
  { "h200", "hbm_bandwidth", 4.8e12, 4.8e12 },
  { "h200", "peak_fp8", 1.979e15, 2e15 },
  { "b200", "peak_bf16", 2.25e15, 2.3e15 },
  { "b200", "peak_fp8", 4.5e15, 4.5e15 },
  { "b200", "peak_fp4", 9e15, 9e15 },
  { "b200", "hbm_bandwidth", 8e12, 8e12 },
  { "b200", "l2_capacity", 132644864, 126e6 },
  { "b200", "scale_up_bandwidth", 900e9, 900e9 },
};

/* The number of a rated field, through pod_chip_set's own paths: the field's value is what
 * pod_chip_get prints; the book's has no text form, so it is looked up in the file. */
static double
book_value (const PodChip *chip, const char *field, PodUnit unit, double nominal)
{
  g_autoptr (PodXml) xml = pod_xml_load (chip->file, NULL, NULL);
  PodXmlNode *node = pod_xml_child (pod_xml_root (xml), field);
  double book = nominal;

  ck_assert (pod_xml_get_quantity (xml, node, "book", unit, false, &book, NULL));
  return book;
}

START_TEST (test_values)
{
  g_autoptr (PodChip) chip = load (fact_cases[_i].chip);
  const char *field = fact_cases[_i].field;
  g_autofree char *text = pod_chip_get (chip, field);
  PodUnit unit = g_str_has_prefix (field, "peak")       ? POD_UNIT_FLOPS_PER_S
                 : g_str_has_suffix (field, "capacity") ? POD_UNIT_BYTES
                                                        : POD_UNIT_BYTES_PER_S;
  double nominal = 0;

  ck_assert_ptr_nonnull (text);
  ck_assert (pod_parse_quantity (text, unit, &nominal, NULL));
  ck_assert_double_eq_tol (nominal, fact_cases[_i].nominal, 1);
  ck_assert_double_eq_tol (book_value (chip, field, unit, nominal), fact_cases[_i].book, 1);
}
END_TEST

/* Counts of the book's tables, and devices per chip. */
static const struct
{
  const char *chip;
  unsigned pod_chips;
  unsigned chips_per_host;
  unsigned cores_per_chip;
  unsigned mxus_per_core;
  unsigned mxu_dim;
  unsigned devices_per_chip;
  unsigned torus_dims;
} count_cases[] = {
  { "tpu-v2", 256, 4, 2, 1, 128, 2, 2 },   { "tpu-v3", 1024, 4, 2, 2, 128, 2, 2 },
  { "tpu-v4", 4096, 4, 2, 4, 128, 1, 3 },  { "tpu-v5e", 256, 8, 1, 4, 128, 1, 2 },
  { "tpu-v5p", 8960, 4, 2, 4, 128, 1, 3 }, { "tpu-v6e", 256, 8, 1, 2, 256, 1, 2 },
  { "tpu-v7x", 9216, 4, 2, 2, 256, 2, 3 }, { "h100", 0, 8, 132, 4, 0, 1, 0 },
  { "h200", 0, 8, 132, 4, 0, 1, 0 },       { "b200", 0, 8, 148, 4, 0, 1, 0 },
  { "gb200", 0, 4, 152, 4, 0, 1, 0 },      { "mi250x", 0, 4, 220, 4, 0, 2, 0 },
};

START_TEST (test_counts)
{
  g_autoptr (PodChip) chip = load (count_cases[_i].chip);
  const unsigned *pod = chip->pod_extent;
  const unsigned *host = chip->host_extent;

  ck_assert_uint_eq (pod[0] * pod[1] * pod[2], count_cases[_i].pod_chips);
  ck_assert_uint_eq (chip->chips_per_host, count_cases[_i].chips_per_host);
  if (chip->family == POD_FAMILY_TPU)
    ck_assert_uint_eq (host[0] * host[1] * host[2], chip->chips_per_host);
  ck_assert_uint_eq (chip->cores_per_chip, count_cases[_i].cores_per_chip);
  ck_assert_uint_eq (chip->mxus_per_core, count_cases[_i].mxus_per_core);
  ck_assert_uint_eq (chip->mxu_dim, count_cases[_i].mxu_dim);
  ck_assert_uint_eq (chip->devices_per_chip, count_cases[_i].devices_per_chip);
  ck_assert_uint_eq (chip->torus_dims, count_cases[_i].torus_dims);
}
END_TEST

START_TEST (test_one_device)
{
  g_autoptr (PodChip) two = load ("tpu-v7x");
  g_autoptr (PodChip) one = load ("h100");
  PodDtype used = POD_N_DTYPES;

  ck_assert_double_eq_tol (pod_chip_peak (two, POD_DTYPE_BF16, false, NULL), 2.307e15 / 2, 1);
  ck_assert_double_eq_tol (pod_chip_hbm_rate (two, true), 3.7e12, 1);
  ck_assert_double_eq_tol (pod_chip_hbm_capacity (two, false), 103079215104, 1);
  ck_assert_double_eq_tol (pod_chip_peak (one, POD_DTYPE_FP8, true, &used), 2e15, 1);
  ck_assert_int_eq (used, POD_DTYPE_FP8);
  ck_assert_double_eq_tol (pod_chip_peak (one, POD_DTYPE_FP4, false, &used), 1.979e15, 1);
  ck_assert_int_eq (used, POD_DTYPE_FP8);
  ck_assert_double_eq_tol (pod_chip_peak (two, POD_DTYPE_INT8, false, &used), 2.307e15 / 2, 1);
  ck_assert_int_eq (used, POD_DTYPE_BF16);
}
END_TEST

/* -- changing ---------------------------------------------------------------------------------- */

START_TEST (test_set)
{
  g_autoptr (PodChip) chip = load ("tpu-v5e");
  g_autoptr (GError) error = NULL;

  ck_assert (pod_chip_set (chip, "hbm_bandwidth", "1.23TB/s", &error));
  ck_assert_double_eq_tol (chip->hbm_bytes_per_s.nominal, 1.23e12, 1);
  ck_assert_double_eq_tol (chip->hbm_bytes_per_s.book, 1.23e12, 1);
  ck_assert (pod_chip_set (chip, "ici_latency", "2 us", &error));
  ck_assert_int_eq (chip->ici_hop_ps, 2000000);
  ck_assert (pod_chip_set (chip, "matmul_efficiency", "80%", &error));
  ck_assert_double_eq_tol (chip->matmul_efficiency, 0.8, 1e-12);
  ck_assert (pod_chip_set (chip, "wrap_rule", "never", &error));
  ck_assert (pod_chip_set (chip, "pod_extent", "8x8", &error));
  g_autofree char *text = pod_chip_get (chip, "pod_extent");
  ck_assert_str_eq (text, "8x8");
  ck_assert_ptr_null (pod_chip_get (chip, "no_such_field"));
}
END_TEST

/* Every field reads back what it prints. */
START_TEST (test_get_reads_back)
{
  g_autoptr (PodChip) chip = load ("tpu-v4");
  PodChipFieldInfo info;

  for (size_t index = 0; pod_chip_field (index, &info); index++)
    {
      g_autofree char *text = pod_chip_get (chip, info.name);
      g_autoptr (GError) error = NULL;
      bool is_unset = g_str_has_prefix (text, "0");
      ck_assert_ptr_nonnull (info.summary);
      if (is_unset)
        continue;
      ck_assert_msg (pod_chip_set (chip, info.name, text, &error), "%s",
                     error != NULL ? error->message : "");
      g_autofree char *again = pod_chip_get (chip, info.name);
      ck_assert_str_eq (again, text);
    }
}
END_TEST

static const struct
{
  const char *path;
  const char *value;
  const char *message;
} set_cases[] = {
  { "hbm_bandwith", "1 TB/s", "did you mean 'hbm_bandwidth'" },
  { "hbm_bandwidth", "1", "hbm_bandwidth: " },
  { "hbm_bandwidth", "nan TB/s", "hbm_bandwidth: " },
  { "hbm_bandwidth", "0 TB/s", "must be above 0" },
  { "hbm_bandwidth", "-1 TB/s", "hbm_bandwidth: " },
  { "matmul_efficiency", "1.2", "cannot be above 1" },
  { "devices_per_chip", "3", "devices_per_chip must be 1 or 2" },
  { "devices_per_chip", "0", "must be above 0" },
  { "devices_per_chip", "2", "die_bandwidth" },
  { "torus_dims", "4", "torus_dims must be 2 or 3" },
  { "torus_dims", "99999999999", "must be at most" },
  { "wrap_rule", "sometimes", "must be never, always, full-extent or cubes" },
  { "wrap_rule", "cubes", "cube_extent" },
  { "twistable", "maybe", "must be yes or no" },
  { "pod_extent", "4x0", "an axis of 0 is empty" },
  { "pod_extent", "2x2x2x2", "at most 3 axes" },
  { "pod_extent", "4y4", "does not belong" },
  { "reserved_memory", "17 GiB", "must be below hbm_capacity" },
};

START_TEST (test_set_refusals)
{
  g_autoptr (PodChip) chip = load ("tpu-v5e");
  g_autoptr (GError) error = NULL;

  ck_assert (!pod_chip_set (chip, set_cases[_i].path, set_cases[_i].value, &error));
  ck_assert_int_eq (error->domain, POD_ERROR);
  ck_assert_msg (strstr (error->message, set_cases[_i].message) != NULL, "%s", error->message);
  ck_assert_double_eq (chip->hbm_bytes_per_s.nominal, 8.19e11); /* nothing has changed */
  ck_assert_uint_eq (chip->devices_per_chip, 1);
}
END_TEST

/* -- users' files ------------------------------------------------------------------------------ */

static char *
write_chip (const char *text)
{
  char *file = NULL;
  int handle = g_file_open_tmp ("podsim-chip-XXXXXX.xml", &file, NULL);

  ck_assert_int_ge (handle, 0);
  ck_assert (g_close (handle, NULL));
  ck_assert (g_file_set_contents (file, text, -1, NULL));
  return file;
}

#define HEAD "<chip name=\"mine\" family=\"switch\">\n"
#define FACTS                                                                                      \
  "<peak_bf16 value=\"1e15\"/>\n<hbm_capacity value=\"100 GB\"/>\n<hbm_bandwidth value=\"4 "       \
  "TB/s\"/>\n"                                                                                     \
  "<scale_up_bandwidth value=\"400 GB/s\"/>\n"

/* The little that a user must give; every default taken is listed. */
START_TEST (test_users_file)
{
  g_autofree char *file = write_chip (HEAD FACTS "</chip>\n");
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodChip) chip = pod_chip_load (file, assumptions, &error);

  g_remove (file);
  ck_assert_msg (chip != NULL, "%s", error != NULL ? error->message : "");
  ck_assert_str_eq (chip->title, "mine");
  ck_assert_uint_eq (chip->scale_up_chips, 8);
  ck_assert_double_eq_tol (chip->nic_bytes_per_s.nominal, 50e9, 1);
  ck_assert_uint_gt (assumptions->len, 10);
  ck_assert_str_eq (g_ptr_array_index (assumptions, 0),
                    "chip 'mine' gives no devices_per_chip: 1 assumed");
}
END_TEST

/* 2,048 FLOPs a core and clock over 16 exponentials of 4 FLOPs each are 32 elements, and
 * 0.5525 / (1 + 32/128) = 0.442; 8,192 are 128, of which matrix units beside leave 0.334: 42.8, and
 * 0.5525 / (1 + 42.8/128) = 0.414; each to three digits. What a file gives stays, be it 0. */
static const struct
{
  const char *facts;
  double dims;
  double efficiency;
} attention_cases[] = {
  { "<peak_bf16 value=\"307.2 TFLOP/s\"/>\n", 32, 0.442 },
  { "<peak_bf16 value=\"1228.8 TFLOP/s\"/>\n", 42.8, 0.414 },
  { "<peak_bf16 value=\"1228.8 TFLOP/s\"/>\n<attention_softmax_dims value=\"0\"/>\n", 0, 0.553 },
  { "<peak_bf16 value=\"1228.8 TFLOP/s\"/>\n<attention_efficiency value=\"0.3\"/>\n", 42.8, 0.3 },
};

START_TEST (test_attention_by_the_core)
{
  g_autofree char *text = g_strconcat (
      HEAD, attention_cases[_i].facts,
      "<cores_per_chip value=\"100\"/>\n<clock value=\"1.5 GHz\"/>\n"
      "<hbm_capacity value=\"64 GB\"/>\n<hbm_bandwidth value=\"2 TB/s\"/>\n"
      "<scale_up_bandwidth value=\"400 GB/s\"/>\n</chip>\n",
      NULL);
  g_autofree char *file = write_chip (text);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodChip) chip = pod_chip_load (file, NULL, &error);

  g_remove (file);
  ck_assert_msg (chip != NULL, "%s", error != NULL ? error->message : "");
  ck_assert_double_eq_tol (chip->attention_softmax_dims, attention_cases[_i].dims, 1e-9);
  ck_assert_double_eq_tol (chip->attention_efficiency, attention_cases[_i].efficiency, 1e-3);
}
END_TEST

static const struct
{
  const char *text;
  const char *message; /* behind the file's name */
} file_cases[] = {
  { HEAD "<peak_bf16 value=\"1e15\"/>\n</chip>\n", ":1: " },
  { HEAD "<peak_bf16 value=\"1e15\"/>\n<hbm_capacity value=\"1 GB\"/>\n<hbm_bandwidth value=\"1 "
         "TB/s\"/>\n"
         "</chip>\n",
    ":1: chip 'mine' needs scale_up_bandwidth" },
  { HEAD FACTS "<hbm_bandwidth value=\"4 TB/s\"/>\n</chip>\n", ":6: " },
  { HEAD FACTS "<colour value=\"red\"/>\n</chip>\n", ":6: " },
  { HEAD FACTS "<launch value=\"NaN us\"/>\n</chip>\n", ":6: launch: " },
  { HEAD FACTS "<launch value=\"2\"/>\n</chip>\n", ":6: launch: " },
  { HEAD FACTS "<host_bandwidth value=\"0 GB/s\"/>\n</chip>\n",
    ":6: host_bandwidth: must be above 0" },
  { HEAD FACTS "<devices_per_chip value=\"2\"/>\n</chip>\n",
    ":1: two devices per chip need a die_bandwidth" },
  { HEAD FACTS "<chips_per_host value=\"8\" book=\"9\"/>\n</chip>\n", ":6: " },
  { "<chip name=\"mine\" family=\"abacus\">\n" FACTS "</chip>\n", ":1: " },
  { "<topology name=\"mine\"/>\n", ":1: " },
  { "<!DOCTYPE chip>\n" HEAD FACTS "</chip>\n", ":1: " },
  { HEAD FACTS, ":" },
};

START_TEST (test_file_refusals)
{
  g_autofree char *file = write_chip (file_cases[_i].text);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodChip) chip = pod_chip_load (file, NULL, &error);

  g_remove (file);
  ck_assert_ptr_null (chip);
  ck_assert (g_str_has_prefix (error->message, file));
  ck_assert_msg (g_str_has_prefix (error->message + strlen (file), file_cases[_i].message), "%s",
                 error->message);
}
END_TEST

START_TEST (test_unknown_chip)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodChip) upper = load ("H100");

  ck_assert_str_eq (upper->name, "h100");
  ck_assert_ptr_null (pod_chip_load ("H2000", NULL, &error));
  ck_assert_int_eq (error->code, POD_ERROR_INVALID);
  ck_assert (
      g_str_has_prefix (error->message, "unknown chip 'H2000', did you mean 'h200'? Known: a100 "));
  g_clear_error (&error);
  ck_assert_ptr_null (pod_chip_load ("/nowhere/mine.xml", NULL, &error));
  ck_assert_str_eq (error->message, "no chip file '/nowhere/mine.xml'");
  g_clear_error (&error);
  ck_assert_ptr_null (pod_chip_load ("abacus-9000", NULL, &error));
  ck_assert (g_str_has_prefix (error->message, "unknown chip 'abacus-9000'. Known: a100 "));
}
END_TEST

static Suite *
chip_suite (void)
{
  Suite *suite = suite_create ("chip");
  TCase *tests = tcase_create ("chip");

  tcase_add_loop_test (tests, test_files_are_complete, 0, G_N_ELEMENTS (chip_names));
  tcase_add_test (tests, test_all_chips_are_listed);
  tcase_add_test (tests, test_schema_is_the_table);
  tcase_add_loop_test (tests, test_values, 0, G_N_ELEMENTS (fact_cases));
  tcase_add_loop_test (tests, test_counts, 0, G_N_ELEMENTS (count_cases));
  tcase_add_test (tests, test_one_device);
  tcase_add_test (tests, test_set);
  tcase_add_test (tests, test_get_reads_back);
  tcase_add_loop_test (tests, test_set_refusals, 0, G_N_ELEMENTS (set_cases));
  tcase_add_test (tests, test_users_file);
  tcase_add_loop_test (tests, test_attention_by_the_core, 0,
                       (int) G_N_ELEMENTS (attention_cases));
  tcase_add_loop_test (tests, test_file_refusals, 0, G_N_ELEMENTS (file_cases));
  tcase_add_test (tests, test_unknown_chip);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (chip_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
