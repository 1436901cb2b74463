#include "scenario/result-private.h"

#include <math.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/xml.h"
#include "scenario/run-cache.h"

/* How far a step's time may be off, and what of it lies outside all that was measured.
 *
 * Errors of one kind of operation go together, those of different kinds do not: with s the parts of the step that kernels of each
 * kind and exposed collectives take, and e what 9 of 10 of that kind were within,
 *   r = sqrt (sum over kinds (s e)^2 + e_step^2),   low = time exp (-r),   high = time exp (r)
 * Waiting for other stages is as uncertain as the compute that is waited for. */

enum
{
  KIND_MATMUL,
  KIND_ATTENTION,
  KIND_ELEMENTWISE,
  KIND_OPTIMIZER,
  KIND_HOST,
  KIND_COLLECTIVE,
  KIND_STEP,
  N_KINDS
};

static const char *const kind_names[N_KINDS + 1] = { "matmul", "attention", "elementwise", "optimizer", "host", "collective", "step" };

typedef struct
{
  double error_ratio[N_KINDS];
  double most_chips; /* of a published step on this chip; 0: none is */
} Known;

static bool
read_error (const PodXml *xml, PodXmlNode *node, Known *known, GError **error)
{
  g_autofree char *name = pod_xml_attr (node, "kind");
  int kind;

  return pod_run_choose ("kind", name, kind_names, 0, &kind, error) && pod_xml_get_quantity (xml, node, "ratio", POD_UNIT_RATIO, true, &known->error_ratio[kind], error);
}

static PodXml *
load (const char *name, GError **error)
{
  g_autofree char *file = pod_data_find ("workloads/measured", name, ".xml");
  g_autofree char *schema = pod_data_find ("workloads/measured", "uncertainty.xsd", ".xsd");

  if (file != NULL && schema != NULL)
    return pod_xml_load (file, schema, error);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "workloads/measured/%s.%s is missing: set PODSIM_PATH", name, file == NULL ? "xml" : "xsd");
  return NULL;
}

static bool
read_known (const PodXml *xml, const PodChip *chip, Known *known, GError **error)
{
  for (PodXmlNode *node = pod_xml_child (pod_xml_root (xml), NULL); node != NULL; node = pod_xml_next (node, NULL))
    {
      g_autofree char *name = pod_xml_attr (node, "chip");

      if (name == NULL ? !read_error (xml, node, known, error) : strcmp (name, chip->name) == 0 && !pod_xml_get_quantity (xml, node, "chips", POD_UNIT_COUNT, true, &known->most_chips, error))
        return false;
    }
  return true;
}

static bool
find_known (const PodRun *run, Known *known, GError **error)
{
  PodXml *xml = pod_run_cache_document (run->cache, "uncertainty", load, error);
  const bool is_read = xml != NULL && read_known (xml, run->topology->chip, known, error);

  if (run->cache == NULL)
    pod_xml_free (xml);
  return is_read;
}

/* ---- how far ---- */

static double
range_ratio (const PodExecResult *exec, const Known *known)
{
  const PodBreakdown *b = &exec->breakdown;
  const double step_s = (double) exec->time_ps / 1e12;
  const double stretch = b->compute_ps > 0 ? 1 + (double) b->bubble_ps / (double) b->compute_ps : 1;
  double part_s[N_KINDS] = {
    [KIND_MATMUL] = exec->kernel_s[POD_KERNEL_MATMUL] * stretch,
    [KIND_ATTENTION] = (exec->kernel_s[POD_KERNEL_ATTENTION] + exec->kernel_s[POD_KERNEL_ATTENTION_BACKWARD]) * stretch,
    [KIND_ELEMENTWISE] = exec->kernel_s[POD_KERNEL_VECTOR] * stretch,
    [KIND_OPTIMIZER] = exec->kernel_s[POD_KERNEL_OPTIMIZER],
    [KIND_HOST] = exec->losses_s[POD_LOSS_HOST] * stretch,
    [KIND_STEP] = step_s,
  };
  double sum = 0;

  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    part_s[KIND_COLLECTIVE] += (double) b->exposed_ps[a] / 1e12;
  for (unsigned kind = 0; kind < N_KINDS; kind++)
    sum += pow (part_s[kind] / step_s * known->error_ratio[kind], 2);
  return sqrt (sum);
}

/* ---- outside what was measured ---- */

/* Values of one axis of a surface beyond its nodes. */
typedef struct
{
  double least;
  double most;
} Beyond;

static void
look_beyond (const PodSurface *surface, const double *at, Beyond *beyond)
{
  for (unsigned a = 0; a < surface->n_axes; a++)
    {
      const PodSurfaceAxis *axis = &surface->axes[a];

      if (at[a] < axis->nodes[0])
        beyond[a].least = beyond[a].least > 0 ? MIN (beyond[a].least, at[a]) : at[a];
      if (at[a] > axis->nodes[axis->n_nodes - 1])
        beyond[a].most = MAX (beyond[a].most, at[a]);
    }
}

static void
tell_beyond (PodChipSurface kind, const PodSurface *surface, const Beyond *beyond, GPtrArray *out)
{
  g_autofree char *name = g_strndup (pod_chip_surface_name (kind), strlen (pod_chip_surface_name (kind)) - strlen ("_surface"));

  for (unsigned a = 0; a < surface->n_axes; a++)
    {
      const PodSurfaceAxis *axis = &surface->axes[a];

      if (beyond[a].least > 0)
        pod_run_assume (out, "%s: %s down to %g, measured from %g on", name, pod_chip_surface_axis (kind, a), beyond[a].least, axis->nodes[0]);
      if (beyond[a].most > 0)
        pod_run_assume (out, "%s: %s up to %g, measured up to %g", name, pod_chip_surface_axis (kind, a), beyond[a].most, axis->nodes[axis->n_nodes - 1]);
    }
}

/* Kernels that no table has: of a chip without one, or beyond its ends. */
static void
tell_kernels (const PodRun *run, GPtrArray *out)
{
  const PodChip *chip = run->topology->chip;
  Beyond beyond[POD_N_SURFACES][POD_SURFACE_MAX_AXES] = { { { 0 } } };
  bool is_missing[POD_N_SURFACES] = { false };
  bool has_backward = false;

  for (guint i = 0; i < run->exec->kernels->len; i++)
    {
      const PodKernelUse *use = &g_array_index (run->exec->kernels, PodKernelUse, i);
      PodKernelPoint points[POD_KERNEL_MAX_POINTS];
      const unsigned n = use->n_calls > 0 ? pod_kernel_points (&use->kernel, points) : 0;

      has_backward |= use->n_calls > 0 && use->kernel.kind == POD_KERNEL_ATTENTION_BACKWARD;
      for (unsigned p = 0; p < n; p++)
        if (chip->surfaces[points[p].kind] == NULL)
          is_missing[points[p].kind] = true;
        else
          look_beyond (chip->surfaces[points[p].kind], points[p].at, beyond[points[p].kind]);
    }
  for (unsigned kind = 0; kind < POD_N_SURFACES; kind++)
    if (chip->surfaces[kind] != NULL)
      tell_beyond ((PodChipSurface) kind, chip->surfaces[kind], beyond[kind], out);
    else if (is_missing[kind])
      pod_run_assume (out, "%.*s: none measured on %s, closed form with the chip's constants", (int) (strlen (pod_chip_surface_name ((PodChipSurface) kind)) - strlen ("_surface")),
                      pod_chip_surface_name ((PodChipSurface) kind), chip->title);
  if (has_backward)
    pod_run_assume (out, "attention backward: not measured alone, 0.87 of forward's rate");
}

static void
tell_steps (const PodScenario *scenario, const PodRun *run, const Known *known, GPtrArray *out)
{
  const PodTopology *topology = run->topology;

  if (known->most_chips == 0)
    pod_run_assume (out, "steps on %s: none published that was compared", topology->chip->title);
  else if (topology->n_chips > known->most_chips)
    pod_run_assume (out, "%u chips: steps on %s were compared up to %g", topology->n_chips, topology->chip->title, known->most_chips);
  if (scenario->framework == NULL)
    pod_run_assume (out, "no --framework: fused kernels, a host that is never waited for");
}

bool
pod_run_set_uncertainty (const PodScenario *scenario, PodRun *run, GError **error)
{
  const double time_s = (double) run->exec->time_ps / 1e12;
  Known known = { { 0 }, 0 };
  double ratio;

  if (run->fidelity != POD_FIDELITY_CALIBRATED || !(time_s > 0))
    return true;
  if (!find_known (run, &known, error))
    return false;
  ratio = range_ratio (run->exec, &known);
  pod_result_set_double (run->result, "step.time_low_s", time_s * exp (-ratio));
  pod_result_set_double (run->result, "step.time_high_s", time_s * exp (ratio));
  tell_kernels (run, run->extrapolated);
  tell_steps (scenario, run, &known, run->extrapolated);
  return true;
}
