/* Ring collectives against ASTRA-sim (tests/data/astra/rings.tsv; docs/model/astra.md): with its
 * endpoint delay, local memory and rounding to whole nanoseconds every row comes out to the
 * nanosecond, without the rounding within 0.4 %. One process for all rows, planned as podsim
 * collective does. Prints a line per row, for tests/check-astra.sh:
 *
 *   ok NAME
 *   not ok NAME: why
 *
 * Usage: astra-check ROWS.tsv
 * Exit status: 0 when every row was judged, 2 on a table that cannot be read. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "collective/collective.h"

/* ASTRA-sim's, as the head of the table gives them */
static const double endpoint_s = 10e-9, local_bytes_per_s = 1600e9;
static const double exact_ns = 0.01, smooth_ratio = 0.004;

enum
{
  BACKEND,
  COLLECTIVE,
  BLOCK,
  DIMS,
  BYTES,
  NS,
  N_COLUMNS
};

/* What the rows of one block and size share. */
typedef struct
{
  PodTopology *topology;
  uint32_t *devices;
  PodGroup group;
} Machine;

static void
machine_free (gpointer data)
{
  Machine *machine = data;

  pod_topology_free (machine->topology);
  g_free (machine->devices);
  g_free (machine);
}

static bool
set_all (PodTopology *topology, const char *const *sets, GError **error)
{
  for (; sets[0] != NULL; sets += 2)
    if (!pod_topology_set (topology, sets[0], sets[1], error))
      return false;
  return true;
}

/* A machine that a block of ASTRA-sim's topology stands for. Into a switch and out of it are two
 * links of 500 ns; in a full mesh a device's rate is that of its n - 1 links together. */
static PodTopology *
load (const char *block, const char *dims, GError **error)
{
  g_autofree char *shape = NULL;
  g_autofree char *rate = g_strdup ("50GiB/s");
  const char *family = "scale_up", *latency = "500ns";
  g_autofree char *rate_path = NULL;
  g_autofree char *latency_path = NULL;
  g_autoptr (PodTopology) topology = NULL;

  if (g_str_has_prefix (block, "Ring"))
    {
      const char *last = strrchr (dims, 'x');
      const char *axes = last == NULL ? "x" : strchr (dims, 'x') == last ? "xy" : "xyz";

      family = "ici";
      shape = g_strdup_printf ("tpu-v5p:%s,unchecked,wrap=%s", dims, axes);
    }
  else if (strcmp (block, "Switch") == 0)
    {
      latency = "1us";
      shape = g_strdup_printf ("h100:%s,unchecked", dims);
    }
  else
    {
      g_free (rate);
      rate = g_strdup_printf ("%dGiB/s", 50 * (atoi (dims) - 1));
      shape = g_strdup_printf ("mi300x:%s,unchecked", dims);
    }
  rate_path = g_strdup_printf ("chip.%s_bandwidth", family);
  latency_path = g_strdup_printf ("chip.%s_latency", family);
  topology = pod_topology_load (shape, error);
  if (topology == NULL
      || !set_all (topology,
                   (const char *const[]){ rate_path, rate, latency_path, latency, NULL, NULL }, error))
    return NULL;
  return g_steal_pointer (&topology);
}

static Machine *
machine_of (GHashTable *machines, const char *block, const char *dims, GError **error)
{
  g_autofree char *key = g_strdup_printf ("%s %s", block, dims);
  Machine *machine = g_hash_table_lookup (machines, key);
  PodTopology *topology;

  if (machine != NULL)
    return machine;
  topology = load (block, dims, error);
  if (topology == NULL)
    return NULL;
  machine = g_new0 (Machine, 1);
  machine->topology = topology;
  machine->devices = g_new (uint32_t, topology->n_devices);
  for (uint32_t i = 0; i < topology->n_devices; i++)
    machine->devices[i] = i;
  machine->group = (PodGroup){ .n_devices = topology->n_devices, .devices = machine->devices };
  for (unsigned dim = 0; topology->fabric == POD_FABRIC_TORUS && dim < topology->n_dims; dim++)
    machine->group.factors[machine->group.n_factors++]
        = (PodGroupFactor){ .dim = (uint8_t) dim, .stride = 1, .size = topology->extent[dim] };
  g_hash_table_insert (machines, g_steal_pointer (&key), machine);
  return machine;
}

static bool
time_ns (const Machine *machine, char *const *cells, bool is_in_whole_ns, double *out,
         GError **error)
{
  PodStepLaw law = { .endpoint_s = endpoint_s,
                     .local_bytes_per_s = local_bytes_per_s,
                     .is_in_whole_ns = is_in_whole_ns,
                     .is_stored_and_forwarded
                     = strcmp (cells[BLOCK], "Switch") == 0 && strcmp (cells[BACKEND], "aware") == 0 };
  PodPlanQuery query = { .topology = machine->topology,
                         .fidelity = POD_FIDELITY_IDEAL,
                         .group = &machine->group,
                         .dtype = POD_DTYPE_BF16,
                         .algorithm = "step-ring",
                         .steps = &law };
  g_autoptr (PodPlan) plan = NULL;

  if (!pod_collective_parse (cells[COLLECTIVE], &query.kind, error)
      || !pod_parse_whole (cells[BYTES], POD_UNIT_BYTES, &query.payload_bytes, error))
    return false;
  if (query.kind == POD_ALL_GATHER)
    query.payload_bytes *= machine->group.n_devices;
  plan = pod_collective_plan_query (&query, error);
  if (plan == NULL)
    return false;
  *out = 1e9 * pod_plan_time (query.topology, query.fidelity, plan, query.payload_bytes);
  return true;
}

static void
judge (GHashTable *machines, char *const *cells)
{
  g_autofree char *name
      = g_strdup_printf ("astra %s %s %s %s %s", cells[BACKEND], cells[COLLECTIVE], cells[BLOCK],
                         cells[DIMS], cells[BYTES]);
  double wanted = g_ascii_strtod (cells[NS], NULL), whole, smooth;
  g_autoptr (GError) error = NULL;
  Machine *machine = machine_of (machines, cells[BLOCK], cells[DIMS], &error);

  if (machine == NULL || !time_ns (machine, cells, true, &whole, &error)
      || !time_ns (machine, cells, false, &smooth, &error))
    printf ("not ok %s: %s\n", name, error->message);
  else if (!(fabs (whole - wanted) <= exact_ns))
    printf ("not ok %s: got %.3f ns, ASTRA-sim has %s\n", name, whole, cells[NS]);
  else if (!(fabs (smooth / wanted - 1) <= smooth_ratio))
    printf ("not ok %s: without rounding %.3f ns, ASTRA-sim has %s\n", name, smooth, cells[NS]);
  else
    printf ("ok %s\n", name);
}

int
main (int argc, char **argv)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) machines
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, machine_free);

  if (argc != 2 || !g_file_get_contents (argv[1], &text, NULL, &error))
    {
      fprintf (stderr, "astra-check: %s\n", argc != 2 ? "one table, please" : error->message);
      return 2;
    }
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_auto (GStrv) cells = g_strsplit (lines[i], "\t", -1);

      if (lines[i][0] == '\0' || lines[i][0] == '#')
        continue;
      if (g_strv_length (cells) != N_COLUMNS)
        {
          fprintf (stderr, "astra-check: %s:%u: expected %d columns\n", argv[1], i + 1, N_COLUMNS);
          return 2;
        }
      judge (machines, cells);
    }
  return 0;
}
