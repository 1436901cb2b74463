/* A shifted plan is the plan of the shifted group: same links, same shares, same latency, on machines of every family, for groups of every
 * regular form and every kind of collective. */
#include <check.h>
#include <stdlib.h>

#include "collective/collective.h"

static const char *const machines[] = {
  "h100:8x16",           "h100:8x96,tree=3",   "h100:8x128,rails=1", "h100:8x40,rails=4",       "h100:8x64,unit=8,pod=16,oversub=2",
  "h100:8x16,separate-rails", "gb200:64x2",    "mi300x:8x16",        "mi250x:4x16",             "tpu-v5p:4x4x8",
  "tpu-v5p:2x8x8,unchecked", "tpu-v4:4x4x4*2", "tpu-v5e:8x16",       "tpu-v3:8x8",              "tpu-v7x:4x4x4",
  "tpu-v5p:4x4x8t",
};

static gint
compare_entries (gconstpointer a, gconstpointer b)
{
  const PodPathEntry *x = a;
  const PodPathEntry *y = b;

  return x->link < y->link ? -1 : x->link > y->link;
}

static void
check_same (PodPlan *shifted, PodPlan *planned, const char *where)
{
  ck_assert_msg (shifted->n_entries == planned->n_entries, "%s: %u links instead of %u", where, shifted->n_entries, planned->n_entries);
  ck_assert_msg (shifted->latency_ps == planned->latency_ps, "%s: latency", where);
  ck_assert_msg (shifted->busiest_ratio == planned->busiest_ratio && shifted->wire_ratio == planned->wire_ratio, "%s: ratios", where);
  if (planned->n_entries == 0)
    return;
  qsort (shifted->entries, shifted->n_entries, sizeof (PodPathEntry), compare_entries);
  qsort (planned->entries, planned->n_entries, sizeof (PodPathEntry), compare_entries);
  for (uint32_t i = 0; i < planned->n_entries; i++)
    ck_assert_msg (shifted->entries[i].link == planned->entries[i].link && shifted->entries[i].share_q32 == planned->entries[i].share_q32,
                   "%s: link %u with %lu instead of link %u with %lu", where, shifted->entries[i].link, (unsigned long) shifted->entries[i].share_q32,
                   planned->entries[i].link, (unsigned long) planned->entries[i].share_q32);
}

static PodPlan *
plan (const PodTopology *topology, const PodGroup *group, PodCollectiveKind kind)
{
  g_autoptr (GError) error = NULL;
  PodPlan *made = pod_collective_plan (topology, POD_FIDELITY_CALIBRATED, group, kind, 1 << 20, NULL, &error);

  ck_assert_msg (made != NULL || error != NULL, "neither a plan nor an error");
  return made;
}

/* The plans of @first, which starts at device 0, shifted to some other places. Returns how many were. */
static unsigned
check_group (const PodTopology *topology, const PodGroup *first)
{
  const uint32_t n = first->n_devices;
  g_autofree uint32_t *other = g_new (uint32_t, n);
  const uint32_t n_bases = topology->n_devices - first->devices[n - 1];
  unsigned n_shifted = 0;

  for (PodCollectiveKind kind = 0; kind < POD_N_COLLECTIVES; kind++)
    {
      g_autoptr (PodPlan) base_plan = kind != POD_SEND || n == 2 ? plan (topology, first, kind) : NULL;

      for (uint32_t base = 1; base_plan != NULL && base < n_bases; base += 1 + n_bases / 37)
        {
          g_autofree char *where = g_strdup_printf ("%s: %s over %u to %u, at %u", topology->name, pod_collective_name (kind), n, first->devices[n - 1], base);
          PodGroup moved = *first;
          PodTopologyShift shift;

          moved.devices = other;
          for (uint32_t i = 0; i < n; i++)
            other[i] = first->devices[i] + base;
          if (!pod_topology_shift_init (&shift, topology, first->devices, other, n))
            continue;
          g_autoptr (PodPlan) shifted = pod_plan_shift (base_plan, &shift);
          g_autoptr (PodPlan) planned = plan (topology, &moved, kind);
          check_same (shifted, planned, where);
          n_shifted++;
        }
    }
  return n_shifted;
}

static unsigned
check_list (const PodTopology *topology, uint32_t n, uint32_t stride)
{
  g_autofree uint32_t *devices = g_new (uint32_t, n);
  const PodGroup group = { .n_devices = n, .devices = devices };

  for (uint32_t i = 0; i < n; i++)
    devices[i] = stride * i;
  return check_group (topology, &group);
}

/* All devices of a product of parts of two axes. */
static unsigned
check_factors (const PodTopology *topology, const PodGroupFactor factors[2])
{
  const uint32_t n = factors[0].size * factors[1].size;
  g_autofree uint32_t *devices = g_new (uint32_t, n);
  const PodGroup group = { .n_devices = n, .devices = devices, .n_factors = 2, .factors = { factors[0], factors[1] } };

  for (uint32_t i = 0; i < n; i++)
    {
      unsigned at[POD_MAX_DIMS] = { 0 };

      at[factors[0].dim] += i % factors[0].size * factors[0].stride;
      at[factors[1].dim] += i / factors[0].size * factors[1].stride;
      devices[i] = pod_topology_device (topology, at, 0);
    }
  return check_group (topology, &group);
}

/* Halves and wholes of each pair of axes, with gaps and without. */
static unsigned
check_boxes (const PodTopology *topology)
{
  unsigned n = 0;

  for (unsigned a = 0; a < topology->n_dims; a++)
    for (unsigned b = a + 1; b < topology->n_dims; b++)
      for (unsigned form = 0; form < 16; form++)
        {
          const uint32_t strides[2] = { 1 + (form & 1), 1 + (form >> 1 & 1) };
          const uint32_t sizes[2] = { topology->extent[a] / strides[0] / (1 + (form >> 2 & 1)), topology->extent[b] / strides[1] / (1 + (form >> 3 & 1)) };

          if (sizes[0] > 0 && sizes[1] > 0)
            n += check_factors (topology, (PodGroupFactor[]){ { (uint8_t) a, strides[0], sizes[0] }, { (uint8_t) b, strides[1], sizes[1] } });
        }
  return n;
}

START_TEST (test_shifted_is_planned)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodTopology) topology = pod_topology_load (machines[_i], &error);
  unsigned n_shifted = 0;

  ck_assert_msg (topology != NULL, "%s", error != NULL ? error->message : "");
  for (uint32_t n = 2; n <= 32; n *= n == 4 ? 3 : 2) /* 12 and 24 too */
    for (uint32_t stride = 1; stride * (n - 1) < topology->n_devices; stride *= stride == 2 ? 3 : 2)
      n_shifted += check_list (topology, n, stride);
  if (topology->fabric == POD_FABRIC_TORUS)
    n_shifted += check_boxes (topology);
  ck_assert_msg (topology->is_twisted || n_shifted > 50, "%s: %u groups shifted", machines[_i], n_shifted);
}
END_TEST

/* Where a shift would not be one: the second group lies over a border that the first one does not cross. */
START_TEST (test_refused)
{
  g_autoptr (PodTopology) nodes = pod_topology_load ("h100:8x16", NULL);
  g_autoptr (PodTopology) twisted = pod_topology_load ("tpu-v5p:4x4x8t", NULL);
  PodTopologyShift shift;

  ck_assert (!pod_topology_shift_init (&shift, nodes, (uint32_t[]){ 0, 1 }, (uint32_t[]){ 7, 8 }, 2));
  ck_assert (!pod_topology_shift_init (&shift, nodes, (uint32_t[]){ 0, 1 }, (uint32_t[]){ 8, 10 }, 2));
  ck_assert (pod_topology_shift_init (&shift, nodes, (uint32_t[]){ 0, 1 }, (uint32_t[]){ 14, 15 }, 2));
  ck_assert (!pod_topology_shift_init (&shift, twisted, (uint32_t[]){ 0 }, (uint32_t[]){ 1 }, 1));
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("shift");
  TCase *tcase = tcase_create ("shift");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 120);
  tcase_add_loop_test (tcase, test_shifted_is_planned, 0, G_N_ELEMENTS (machines));
  tcase_add_test (tcase, test_refused);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
