#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"
#include "base/output.h"
#include "collective/library.h"
#include "validate/collective-table.h"
#include "validate/fit-collectives.h"

static const char *const shipped[] = { "nccl-2.27", "nccl-2.29", "rccl", "xla" };

static PodLibrary *
load (const char *name)
{
  g_autoptr (GError) error = NULL;
  PodLibrary *library = pod_library_load (name, &error);

  ck_assert_msg (library != NULL, "%s: %s", name, error == NULL ? "?" : error->message);
  return library;
}

static PodTopology *
load_topology (const char *text)
{
  g_autoptr (GError) error = NULL;
  PodTopology *topology = pod_topology_load (text, &error);

  ck_assert_msg (topology != NULL, "%s: %s", text, error == NULL ? "?" : error->message);
  return topology;
}

/* The plan of one all-reduce and the like over the first @n_ranks devices. */
static PodPlan *
plan (const PodTopology *topology, const PodLibrary *library, uint32_t n_ranks,
      PodCollectiveKind kind, PodDtype dtype, uint64_t bytes, const char *algorithm)
{
  PodGroup group;
  g_autofree uint32_t *devices = pod_collective_first_group (n_ranks, &group);
  g_autoptr (GError) error = NULL;
  PodPlan *made = pod_collective_plan_query (&(PodPlanQuery){ .topology = topology,
                                                              .fidelity = POD_FIDELITY_CALIBRATED,
                                                              .group = &group,
                                                              .kind = kind,
                                                              .dtype = dtype,
                                                              .payload_bytes = bytes,
                                                              .algorithm = algorithm,
                                                              .library = library },
                                             &error);

  ck_assert_msg (made != NULL, "%s", error == NULL ? "?" : error->message);
  return made;
}

/* A path worked by hand: ring all-reduce, 4 ranks at 100 GB/s, 1 MB: w = 1.5/100e9 s a byte.
 * latency (10 + 6 x 2) us = 22 us; bytes 1e6 x 1.5/100e9/0.5 = 30 us; own shard 1e6/4/100e9 = 2.5
 * us.
 */
START_TEST (test_price_by_hand)
{
  PodLibraryPath path = { .launch_s = 10e-6,
                          .step_s = 2e-6,
                          .overlap = 1,
                          .rate_ratio = 0.5,
                          .own_rate_ratio = 1,
                          .narrow_rate_ratio = 0.5 };
  PodLibraryShape shape = { .kind = POD_ALL_REDUCE,
                            .dtype = POD_DTYPE_BF16,
                            .n_ranks = 4,
                            .n_steps = 6,
                            .inside_s_per_byte = 1.5 / 100e9,
                            .own_s_per_byte = 0.25 / 100e9 };
  PodLibraryPrice price;

  pod_library_price (&path, &shape, 1000000, &price);
  ck_assert_double_eq_tol (price.time_s, 54.5e-6, 1e-12);
  ck_assert_double_eq_tol (price.bandwidth_s, 32.5e-6, 1e-12);
  ck_assert_double_eq (price.cost_s, price.time_s);

  /* int8 adds 2.5 us / 0.5; a gather does no arithmetic */
  shape.dtype = POD_DTYPE_INT8;
  pod_library_price (&path, &shape, 1000000, &price);
  ck_assert_double_eq_tol (price.time_s, 59.5e-6, 1e-12);
  shape.kind = POD_ALL_GATHER;
  pod_library_price (&path, &shape, 1000000, &price);
  ck_assert_double_eq_tol (price.time_s, 54.5e-6, 1e-12);

  /* overlap 2: launch + sqrt (12^2 + 32.5^2) us */
  path.overlap = 2;
  pod_library_price (&path, &shape, 1000000, &price);
  ck_assert_double_eq_tol (price.time_s, (10 + sqrt (144 + 32.5 * 32.5)) * 1e-6, 1e-12);

  /* The chooser's belief: 5 + 6 x 1 + 1e6 x 1.5/100e9/0.75 = 31 us */
  path.tuner_launch_s = 5e-6;
  path.tuner_step_s = 1e-6;
  path.tuner_rate_ratio = 0.75;
  pod_library_price (&path, &shape, 1000000, &price);
  ck_assert_double_eq_tol (price.cost_s, 31e-6, 1e-12);
}
END_TEST

/* 18 peers of 32 channels: one each, 14 idle, so the first 1 MB takes 32/18 times as long; 72 peers
 * go round in three turns, 72 of 96; 16 have two each and leave none idle. */
START_TEST (test_channels_of_an_all_to_all)
{
  static const struct
  {
    uint32_t n_ranks;
    double idle;
  } rows[] = { { 2, 1 }, { 16, 1 }, { 18, 32.0 / 18 }, { 36, 64.0 / 36 }, { 72, 96.0 / 72 } };
  PodLibraryPath path
      = { .overlap = 1, .rate_ratio = 0.5, .peer_channels = 32, .channel_bytes = 1e6 };
  PodLibraryShape shape = { .kind = POD_ALL_TO_ALL, .inside_s_per_byte = 1 / 100e9 };
  PodLibraryPrice price;

  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      shape.n_ranks = rows[i].n_ranks;
      pod_library_price (&path, &shape, 500000, &price);
      ck_assert_double_eq_tol (price.time_s, 10e-6 * rows[i].idle, 1e-12);
      pod_library_price (&path, &shape, 3000000, &price);
      ck_assert_double_eq_tol (price.time_s, 40e-6 + 20e-6 * rows[i].idle, 1e-12);
    }
  /* Other collectives have no peers; pairs wait (4-1)^2 x 1 us */
  shape.kind = POD_ALL_GATHER;
  pod_library_price (&path, &shape, 500000, &price);
  ck_assert_double_eq_tol (price.time_s, 10e-6, 1e-12);
  shape.kind = POD_ALL_TO_ALL;
  shape.n_ranks = 4;
  path.pair_step_s = 1e-6;
  pod_library_price (&path, &shape, 500000, &price);
  ck_assert_double_eq_tol (price.time_s, 19e-6, 1e-12);
}
END_TEST

/* Outside its sizes a path keeps its time, and no chooser takes it. */
START_TEST (test_sizes_of_a_path)
{
  PodLibraryPath path = { .overlap = 1, .rate_ratio = 1, .least_bytes = 100, .limit_bytes = 1000 };
  PodLibraryShape shape = { .kind = POD_ALL_REDUCE, .n_ranks = 4, .inside_s_per_byte = 1 / 100e9 };
  static const uint64_t inside[] = { 400, 4000 }, outside[] = { 399, 4001 };
  PodLibraryPrice price;

  for (size_t i = 0; i < 2; i++)
    {
      ck_assert (isfinite (pod_library_cost (&path, &shape, inside[i])));
      ck_assert (isinf (pod_library_cost (&path, &shape, outside[i])));
      pod_library_price (&path, &shape, outside[i], &price);
      ck_assert (isinf (price.cost_s));
      ck_assert_double_eq_tol (price.time_s, (double) outside[i] / 100e9, 1e-15);
    }
}
END_TEST

/* A device after "*" has its paths but for those that it gives itself. */
START_TEST (test_shared_paths)
{
  static const char text[] = "<library name=\"x\" title=\"y\">\n<device chips=\"*\">"
                             "<path algorithm=\"ring\" protocol=\"ll\" kinds=\"all_gather\"><rate "
                             "value=\"0.1\" source=\"s\"/></path>"
                             "<path algorithm=\"ring\" protocol=\"simple\" "
                             "kinds=\"all_gather\"><rate value=\"0.2\" source=\"s\"/></path>"
                             "</device><device chips=\"h100\">"
                             "<path algorithm=\"ring\" protocol=\"ll\" kinds=\"all_gather\"><rate "
                             "value=\"0.3\" source=\"s\"/></path>"
                             "</device></library>\n";
  g_autoptr (PodLibrary) library = NULL;
  const PodLibraryDevice *device;

  ck_assert (pod_output_save ("shared.xml", text, NULL));
  library = load ("./shared.xml");
  device = g_ptr_array_index (library->devices, 1);
  ck_assert_uint_eq (device->paths->len, 2);
  ck_assert_double_eq (((PodLibraryPath *) g_ptr_array_index (device->paths, 0))->rate_ratio, 0.3);
  ck_assert_double_eq (((PodLibraryPath *) g_ptr_array_index (device->paths, 1))->rate_ratio, 0.2);
}
END_TEST

/* NCCL 2.30.7 by its tables: ring all-reduce, one node of 8 Hopper, 16 channels of 20 GB/s. LL 15.0
 * us at 80.6 GB/s, LL128 40.6 us at 168, Simple 56.0 us at 183: LL wins to 4.0 MB, LL128 to 32 MB.
 */
START_TEST (test_chooser_of_nccl)
{
  static const struct
  {
    PodProtocol protocol;
    double latency_s;
    double bytes_per_s;
  } rows[] = { { POD_PROTOCOL_LL, 15.0e-6, 80.6e9 },
               { POD_PROTOCOL_LL128, 40.6e-6, 168e9 },
               { POD_PROTOCOL_SIMPLE, 56.0e-6, 183e9 } };
  PodLibraryDevice device = { .paths = g_ptr_array_new_with_free_func (g_free) };
  GArray *cases = g_array_new (FALSE, TRUE, sizeof (PodLibraryCase));
  PodLibraryCase one = {
    .algorithm = "ring",
    .shape = { .kind = POD_ALL_REDUCE, .n_ranks = 8, .n_steps = 14, .inside_s_per_byte = 1 / 200e9 }
  };
  PodLibraryPrice price;

  g_array_append_val (cases, one);
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      PodLibraryPath *path = g_new0 (PodLibraryPath, 1);

      *path = (PodLibraryPath){ .algorithm = (char *) "ring",
                                .protocol = rows[i].protocol,
                                .kinds = 1 << POD_ALL_REDUCE,
                                .overlap = 1,
                                .rate_ratio = 1,
                                .tuner_launch_s = rows[i].latency_s,
                                .tuner_rate_ratio = rows[i].bytes_per_s / 200e9 };
      g_ptr_array_add (device.paths, path);
    }
  ck_assert_int_eq (pod_library_choose (&device, cases, 3900000, &price)->protocol,
                    POD_PROTOCOL_LL);
  ck_assert_int_eq (pod_library_choose (&device, cases, 4100000, &price)->protocol,
                    POD_PROTOCOL_LL128);
  ck_assert_int_eq (pod_library_choose (&device, cases, 31000000, &price)->protocol,
                    POD_PROTOCOL_LL128);
  ck_assert_int_eq (pod_library_choose (&device, cases, 33000000, &price)->protocol,
                    POD_PROTOCOL_SIMPLE);
  g_ptr_array_unref (device.paths);
  g_array_unref (cases);
}
END_TEST

/* Marks the paths of @device that some collective on @shape takes. */
static void
mark_reached (const PodLibrary *library, const PodLibraryDevice *device, const char *shape,
              bool *reached)
{
  g_autoptr (PodTopology) topology = load_topology (shape);

  for (uint32_t n = 2; n <= topology->n_devices;
       n = n < 8                                                    ? n + 1
           : 2 * n > topology->n_devices && n < topology->n_devices ? topology->n_devices
                                                                    : 2 * n)
    for (unsigned kind = 0; kind < POD_N_COLLECTIVES; kind++)
      for (unsigned dtype = 0; dtype < 2; dtype++)
        {
          PodGroup group;
          g_autofree uint32_t *devices = pod_collective_first_group (n, &group);
          g_autoptr (GError) error = NULL;
          g_autoptr (GArray) cases = NULL;

          if (kind == POD_SEND && n > 2)
            continue;
          cases = pod_library_cases (
              &(PodPlanQuery){ .topology = topology,
                               .fidelity = POD_FIDELITY_CALIBRATED,
                               .group = &group,
                               .kind = kind,
                               .dtype = dtype == 0 ? POD_DTYPE_FP32 : POD_DTYPE_BF16,
                               .library = library },
              &error);
          ck_assert_ptr_nonnull (cases);
          for (unsigned log2 = 0; log2 <= 40; log2++)
            {
              PodLibraryPrice price;
              const PodLibraryPath *path
                  = pod_library_choose (device, cases, UINT64_C (1) << log2, &price);
              guint index = 0;

              if (path != NULL && g_ptr_array_find (device->paths, path, &index))
                reached[index] = true;
            }
        }
}

/* The same on 1, 8 and 64 domains of a chip. */
static void
mark_reached_on (const PodLibrary *library, const PodLibraryDevice *device, const char *chip,
                 bool *reached)
{
  g_autoptr (PodChip) loaded = pod_chip_load (chip, NULL, NULL);
  /* the entry alone, so that it is the one that is found */
  g_autoptr (GPtrArray) devices = g_ptr_array_new ();
  const PodLibrary alone = { .name = library->name, .devices = devices };

  ck_assert_ptr_nonnull (loaded);
  g_ptr_array_add (devices, (gpointer) device);
  for (unsigned nodes = 1; nodes <= 64; nodes *= 8)
    {
      g_autofree char *shape = g_strdup_printf ("%s:%ux%u", chip, loaded->scale_up_chips, nodes);

      mark_reached (&alone, device, shape, reached);
    }
}

/* Every cell of every table is the chooser's answer to some collective. */
START_TEST (test_every_cell_is_reachable)
{
  static const char *const common[] = { "a100", "h100", "b200", "gb200" };
  g_autoptr (GString) unreached = g_string_new (NULL);

  for (size_t i = 0; i < G_N_ELEMENTS (shipped); i++)
    {
      g_autoptr (PodLibrary) library = load (shipped[i]);

      for (guint d = 0; d < library->devices->len; d++)
        {
          const PodLibraryDevice *device = g_ptr_array_index (library->devices, d);
          g_autofree bool *reached = g_new0 (bool, device->paths->len + 1);

          if (pod_library_device_is_fitted (device))
            mark_reached_on (library, device, device->chips[0], reached);
          else if (g_strcmp0 (library->name, "rccl") == 0)
            mark_reached_on (library, device, "mi300x", reached);
          else
            for (size_t c = 0; c < G_N_ELEMENTS (common); c++)
              mark_reached_on (library, device, common[c], reached);
          for (guint p = 0; p < device->paths->len; p++)
            {
              const PodLibraryPath *path = g_ptr_array_index (device->paths, p);

              if (!reached[p])
                g_string_append_printf (unreached, "%s, %s: %s/%s is never taken; ", shipped[i],
                                        device->chips[0], path->algorithm,
                                        pod_protocol_name (path->protocol));
            }
        }
    }
  ck_assert_msg (unreached->len == 0, "%s", unreached->str);
}
END_TEST

static void
assert_grows (const PodTopology *topology, const PodLibrary *library, uint32_t n_ranks,
              PodCollectiveKind kind, const char *name)
{
  const double clock_s = 1e-12; /* what precedes the bytes is rounded to it */
  double before_s = 0;

  for (unsigned half = 0; half <= 72; half++)
    {
      uint64_t bytes = (UINT64_C (1) << half / 2) * (2 + half % 2) / 2;
      g_autoptr (PodPlan) made
          = plan (topology, library, n_ranks, kind, POD_DTYPE_BF16, bytes, name);
      double time_s = pod_plan_time (topology, POD_FIDELITY_CALIBRATED, made, bytes);

      ck_assert_msg (time_s >= before_s - clock_s && time_s > 0, "%s over %u: %.13g s after %.13g",
                     name, n_ranks, time_s, before_s);
      before_s = time_s;
    }
}

/* What a chooser's jump does to the whole it may not do to a path: its time never falls. */
START_TEST (test_time_grows_within_a_path)
{
  static const char *const names[] = { "ring/ll", "ring/ll128", "ring/simple", "nvls/simple" };
  g_autoptr (PodLibrary) nccl = load ("nccl-2.27");
  g_autoptr (PodLibrary) xla = load ("xla");
  g_autoptr (PodTopology) node = load_topology ("h100:8");
  g_autoptr (PodTopology) rack = load_topology ("gb200:72");

  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    {
      assert_grows (node, nccl, 8, POD_ALL_REDUCE, names[i]);
      assert_grows (rack, xla, 72, POD_ALL_REDUCE, names[i]);
    }
  assert_grows (rack, xla, 72, POD_ALL_REDUCE, "direct/ll128");
  for (uint32_t n_ranks = 18; n_ranks <= 72; n_ranks *= 2)
    {
      assert_grows (rack, xla, n_ranks, POD_ALL_TO_ALL, "direct/ll");
      assert_grows (rack, xla, n_ranks, POD_ALL_TO_ALL, "direct/simple");
    }
}
END_TEST

START_TEST (test_in_switch_reduction_by_dtype)
{
  g_autoptr (PodLibrary) library = load ("nccl-2.27");
  g_autoptr (PodTopology) h100 = load_topology ("h100:8");
  g_autoptr (PodTopology) b200 = load_topology ("b200:8");
  PodGroup group;
  g_autofree uint32_t *devices = pod_collective_first_group (8, &group);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodPlan) half
      = plan (h100, library, 8, POD_ALL_REDUCE, POD_DTYPE_FP16, 1 << 20, "nvls");
  g_autoptr (PodPlan) wide
      = plan (b200, library, 8, POD_ALL_REDUCE, POD_DTYPE_FP32, UINT64_C (8) << 30, NULL);
  g_autoptr (PodPlan) narrow
      = plan (b200, library, 8, POD_ALL_REDUCE, POD_DTYPE_FP16, UINT64_C (512) << 20, NULL);

  ck_assert_str_eq (half->algorithm, "nvls");
  ck_assert_str_eq (wide->algorithm, "nvls");
  ck_assert_str_eq (narrow->algorithm, "ring");
  for (unsigned dtype = 0; dtype < POD_N_DTYPES; dtype++)
    if (dtype != POD_DTYPE_FP32 && dtype != POD_DTYPE_BF16 && dtype != POD_DTYPE_FP16)
      {
        g_autoptr (PodPlan) made
            = plan (h100, library, 8, POD_ALL_REDUCE, dtype, UINT64_C (1) << 30, NULL);

        ck_assert_str_eq (made->algorithm, "ring");
      }
}
END_TEST

START_TEST (test_overrides)
{
  g_autoptr (PodLibrary) library = load ("nccl-2.27");
  g_autoptr (PodTopology) topology = load_topology ("h100:8");
  g_autoptr (PodPlan) made
      = plan (topology, library, 8, POD_ALL_GATHER, POD_DTYPE_BF16, 1 << 20, "ring/LL128");
  PodGroup group;
  g_autofree uint32_t *devices = pod_collective_first_group (8, &group);
  g_autoptr (GError) error = NULL;
  PodPlanQuery query = { .topology = topology,
                         .fidelity = POD_FIDELITY_CALIBRATED,
                         .group = &group,
                         .kind = POD_ALL_GATHER,
                         .payload_bytes = 1000,
                         .algorithm = "ring/fast",
                         .library = library };

  ck_assert_str_eq (made->algorithm, "ring");
  ck_assert_str_eq (made->protocol, "ll128");
  ck_assert_ptr_null (pod_collective_plan_query (&query, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_UNSUPPORTED));
  ck_assert_str_eq (error->message, "unknown protocol 'fast', expected ll, ll128 or simple");
  g_clear_error (&error);
  query.algorithm = "nvls/simple";
  ck_assert_ptr_null (pod_collective_plan_query (&query, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_UNSUPPORTED));
}
END_TEST

/* book and ideal know no library. */
START_TEST (test_other_fidelities_are_untouched)
{
  g_autoptr (PodLibrary) library = load ("nccl-2.27");
  g_autoptr (PodTopology) topology = load_topology ("h100:8x4");
  PodGroup group;
  g_autofree uint32_t *devices = pod_collective_first_group (32, &group);

  for (unsigned fidelity = POD_FIDELITY_BOOK; fidelity <= POD_FIDELITY_IDEAL; fidelity++)
    {
      PodPlanQuery query = { .topology = topology,
                             .fidelity = fidelity,
                             .group = &group,
                             .kind = POD_ALL_REDUCE,
                             .payload_bytes = 1 << 20,
                             .library = library };
      g_autoptr (PodPlan) with = pod_collective_plan_query (&query, NULL);
      g_autoptr (PodPlan) without = NULL;

      query.library = NULL;
      without = pod_collective_plan_query (&query, NULL);
      ck_assert_str_eq (with->algorithm, without->algorithm);
      ck_assert_ptr_null (with->protocol);
      ck_assert_double_eq (pod_plan_time (topology, fidelity, with, 1 << 20),
                           pod_plan_time (topology, fidelity, without, 1 << 20));
    }
}
END_TEST

START_TEST (test_file_round_trips)
{
  for (size_t i = 0; i < G_N_ELEMENTS (shipped); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PodLibrary) library = pod_library_load_alone (shipped[i], &error);
      g_autoptr (PodLibrary) again = NULL;
      g_autofree char *text = NULL;
      g_autofree char *text_again = NULL;

      ck_assert_msg (library != NULL, "%s", error == NULL ? "?" : error->message);
      text = pod_library_to_xml (library);
      ck_assert (pod_output_save ("again.xml", text, NULL));
      again = pod_library_load_alone ("./again.xml", &error);
      ck_assert_msg (again != NULL, "%s", error == NULL ? "?" : error->message);
      text_again = pod_library_to_xml (again);
      ck_assert_str_eq (text, text_again);
    }
}
END_TEST

/* One small set of numbers per device and library. */
START_TEST (test_few_numbers)
{
  for (size_t i = 0; i < G_N_ELEMENTS (shipped); i++)
    {
      g_autoptr (PodLibrary) library = load (shipped[i]);

      for (guint d = 0; d < library->devices->len; d++)
        {
          const PodLibraryDevice *device = g_ptr_array_index (library->devices, d);
          unsigned n = 0;

          for (guint p = 0; p < device->paths->len; p++)
            for (size_t k = 0; k < pod_n_library_numbers; k++)
              n += g_strcmp0 (
                       ((const PodLibraryPath *) g_ptr_array_index (device->paths, p))->sources[k],
                       POD_LIBRARY_FITTED)
                   == 0;
          ck_assert_uint_le (n, 40);
        }
    }
}
END_TEST

/* "nccl" is the newest; devices come from the library that one is based on; chips have their own.
 */
START_TEST (test_names)
{
  g_autoptr (PodLibrary) newest = load ("nccl");
  g_autoptr (PodTopology) h200 = load_topology ("h200:8");
  g_autoptr (PodTopology) v5e = load_topology ("tpu-v5e:4x4");
  g_autoptr (GError) error = NULL;

  ck_assert_str_eq (newest->name, "nccl-2.29");
  ck_assert_ptr_nonnull (pod_library_device (newest, h200->chip));
  ck_assert (pod_library_device_is_fitted (pod_library_device (newest, h200->chip)));
  ck_assert_ptr_null (pod_library_device (newest, v5e->chip));
  ck_assert_str_eq (pod_library_default (v5e->chip), "xla");
  ck_assert_str_eq (pod_library_default (h200->chip), "nccl-2.27");
  ck_assert_ptr_null (pod_library_load ("mpi", &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_ptr_nonnull (strstr (error->message, "known are nccl-2.27 nccl-2.29 rccl xla"));
}
END_TEST

static void
assert_file_refused (const char *body, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text
      = g_strconcat ("<library name=\"x\" title=\"y\">\n<device chips=\"h100\">\n", body,
                     "\n</device>\n</library>\n", NULL);

  ck_assert (pod_output_save ("bad.xml", text, NULL));
  ck_assert_ptr_null (pod_library_load ("./bad.xml", &error));
  ck_assert_msg (strstr (error->message, part) != NULL, "%s", error->message);
}

START_TEST (test_bad_files)
{
  assert_file_refused ("<path algorithm=\"ring\" protocol=\"ll\" kinds=\"all_gather\">"
                       "<rate value=\"0\" source=\"s\"/></path>",
                       "bad.xml:3: a path needs a rate above 0");
  assert_file_refused ("<path algorithm=\"ring\" protocol=\"ll\" kinds=\"all_gather\">"
                       "<rate value=\"1.2\" source=\"s\"/></path>",
                       "bad.xml:3: rate is a part, so it cannot be above 1");
  assert_file_refused ("<path algorithm=\"ring\" protocol=\"ll\" kinds=\"gather\">"
                       "<rate value=\"1\" source=\"s\"/></path>",
                       "bad.xml:3: unknown collective 'gather'");
  assert_file_refused ("<path algorithm=\"ring\" protocol=\"ll\" kinds=\"all_gather\">"
                       "<launch value=\"3\" source=\"s\"/><rate value=\"1\" source=\"s\"/></path>",
                       "bad.xml:3: ");
  assert_file_refused ("<path algorithm=\"ring\" protocol=\"fast\" kinds=\"all_gather\"/>",
                       "bad.xml:3: ");
}
END_TEST

/* A rate for trees over two nodes needs one for more, and both a source. */
START_TEST (test_tree_channels)
{
  static const char *const attributes[] = {
    "tree_channel_rate_2=\"2 GB/s\"",
    "tree_channel_rate_2=\"2 GB/s\" tree_channel_rate=\"1 GB/s\"",
    "tree_channel_rate=\"1 GB/s\" tree_channel_source=\"s\"",
    "tree_channel_rate_2=\"-2 GB/s\" tree_channel_rate=\"1 GB/s\" tree_channel_source=\"s\"",
  };

  for (size_t i = 0; i < G_N_ELEMENTS (attributes); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *text = g_strdup_printf (
          "<library name=\"x\" title=\"y\">\n<device chips=\"h100\" %s/>\n</library>\n",
          attributes[i]);

      ck_assert (pod_output_save ("bad.xml", text, NULL));
      ck_assert_ptr_null (pod_library_load ("./bad.xml", &error));
      ck_assert_msg (strstr (error->message, "bad.xml:2: ") != NULL
                         && strstr (error->message, "tree_channel_rate") != NULL,
                     "%s", error->message);
    }
}
END_TEST

START_TEST (test_tables)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodCollectiveTable) table = NULL;

  ck_assert (pod_output_save ("t.tsv",
                              "# source: somebody\nop\tdtype\tgpus\tbytes\tlatency_us\n"
                              "all_gather\thalf\t8\t1024\t10.5\nscan\thalf\t8\t1024\t10.5\n",
                              NULL));
  table = pod_collective_table_load ("t.tsv", "h100", &error);
  ck_assert_msg (table != NULL, "%s", error == NULL ? "?" : error->message);
  ck_assert_uint_eq (table->samples->len, 1);
  ck_assert_double_eq_tol (g_array_index (table->samples, PodCollectiveSample, 0).time_s, 10.5e-6,
                           1e-15);
  ck_assert_str_eq (table->source, "somebody");
  ck_assert_uint_eq (table->skipped->len, 1);

  ck_assert (pod_output_save (
      "t.tsv", "op\tdtype\tgpus\tbytes\tlatency_us\nall_gather\thalf\t8\t1024\t0\n", NULL));
  ck_assert_ptr_null (pod_collective_table_load ("t.tsv", "h100", &error));
  ck_assert_str_eq (error->message,
                    "t.tsv:2: needs 2 ranks or more and a time above 0, got 8 and 0 us");
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("library");
  TCase *tests = tcase_create ("library");
  SRunner *runner;
  int n_failed;

  tcase_set_timeout (tests, 120);
  tcase_add_test (tests, test_price_by_hand);
  tcase_add_test (tests, test_channels_of_an_all_to_all);
  tcase_add_test (tests, test_sizes_of_a_path);
  tcase_add_test (tests, test_shared_paths);
  tcase_add_test (tests, test_chooser_of_nccl);
  tcase_add_test (tests, test_every_cell_is_reachable);
  tcase_add_test (tests, test_time_grows_within_a_path);
  tcase_add_test (tests, test_in_switch_reduction_by_dtype);
  tcase_add_test (tests, test_overrides);
  tcase_add_test (tests, test_other_fidelities_are_untouched);
  tcase_add_test (tests, test_file_round_trips);
  tcase_add_test (tests, test_few_numbers);
  tcase_add_test (tests, test_names);
  tcase_add_test (tests, test_bad_files);
  tcase_add_test (tests, test_tree_channels);
  tcase_add_test (tests, test_tables);
  suite_add_tcase (suite, tests);
  runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
