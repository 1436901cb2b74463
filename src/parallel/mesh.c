#include "parallel/mesh.h"

#include <string.h>

#include "base/error.h"
#include "parallel/placement-private.h"

static void
number_ranks (PodMesh *mesh)
{
  uint32_t stride = 1;

  for (unsigned i = 0; i < POD_N_AXES; i++)
    {
      mesh->stride[pod_rank_numbering[i]] = stride;
      stride *= mesh->layout.degree[pod_rank_numbering[i]];
    }
}

/* Strides of the experts' grid in the ranks of a stage, which are the fastest part of a rank's number. */
static void
number_experts (PodMesh *mesh, PodEpPlace ep)
{
  static const PodExpertAxis orders[][POD_N_EXPERT_AXES] = {
    [POD_EP_INSIDE] = { POD_EXPERT_ETP, POD_EXPERT_EP, POD_EXPERT_FSDP, POD_EXPERT_DP },
    [POD_EP_BETWEEN] = { POD_EXPERT_ETP, POD_EXPERT_FSDP, POD_EXPERT_EP, POD_EXPERT_DP },
    [POD_EP_OUTSIDE] = { POD_EXPERT_ETP, POD_EXPERT_FSDP, POD_EXPERT_DP, POD_EXPERT_EP },
  };
  uint32_t stride = 1;

  pod_layout_expert_grid (&mesh->layout, mesh->expert_degree);
  for (unsigned i = 0; i < POD_N_EXPERT_AXES; i++)
    {
      mesh->expert_stride[orders[ep][i]] = stride;
      stride *= mesh->expert_degree[orders[ep][i]];
    }
}

uint32_t
pod_mesh_coordinate (const PodMesh *mesh, uint32_t rank, PodAxis axis)
{
  return rank / mesh->stride[axis] % mesh->layout.degree[axis];
}

/* Torus: the device at the sum of all axes' digits. */
static void
fill_devices_torus (PodMesh *mesh)
{
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    {
      unsigned at[POD_DIM_CORE + 1] = { 0 };

      for (unsigned a = 0; a < POD_N_AXES; a++)
        {
          uint32_t left = pod_mesh_coordinate (mesh, rank, a);

          for (unsigned f = 0; f < mesh->placement[a].n_factors; f++)
            {
              const PodGroupFactor *factor = &mesh->placement[a].factors[f];

              at[factor->dim] += left % factor->size * factor->stride;
              left /= factor->size;
            }
        }
      mesh->device_of_rank[rank] = pod_topology_device (mesh->topology, at, at[POD_DIM_CORE]);
    }
}

static void
fill_devices_order (PodMesh *mesh, const PodAxis order[POD_N_AXES])
{
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    {
      uint32_t device = 0;
      uint32_t stride = 1;

      for (unsigned i = 0; i < POD_N_AXES; i++)
        {
          device += pod_mesh_coordinate (mesh, rank, order[i]) * stride;
          stride *= mesh->layout.degree[order[i]];
        }
      mesh->device_of_rank[rank] = device;
    }
}

PodMesh *
pod_mesh_new (const PodTopology *topology, const PodLayout *layout, const char *map, const char *order, const PodTraffic *traffic,
              GError **error)
{
  g_autoptr (PodMesh) mesh = g_new0 (PodMesh, 1);

  mesh->topology = topology;
  mesh->layout = *layout;
  mesh->n_ranks = pod_layout_n_ranks (layout);
  mesh->device_of_rank = g_new0 (uint32_t, mesh->n_ranks);
  number_ranks (mesh);
  if (topology->fabric == POD_FABRIC_TORUS)
    {
      if (order != NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--order is for switched machines; on a torus say --map \"tp=x:4 fsdp=x:4,y,z\"");
          return NULL;
        }
      if (map != NULL ? !pod_placement_parse (topology, layout, map, mesh->placement, error)
                      : !pod_placement_choose (topology, layout, traffic, mesh->placement, error))
        return NULL;
      fill_devices_torus (mesh);
      number_experts (mesh, POD_EP_INSIDE);
      mesh->text = pod_placement_to_text (topology, mesh->placement);
    }
  else
    {
      PodAxis axes[POD_N_AXES];
      PodEpPlace ep;

      if (map != NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--map is for tori; on this machine say --order tp,cp,fsdp,dp,pp");
          return NULL;
        }
      if (!pod_order_parse (order, axes, &ep, error))
        return NULL;
      fill_devices_order (mesh, axes);
      number_experts (mesh, ep);
      mesh->text = pod_order_to_text (axes, layout->ep > 1 ? &ep : NULL);
    }
  return g_steal_pointer (&mesh);
}

void
pod_mesh_free (PodMesh *mesh)
{
  if (mesh == NULL)
    return;
  g_free (mesh->device_of_rank);
  g_free (mesh->text);
  g_free (mesh);
}

static PodCommunicator *
communicator_new (const char *name, PodAxis axis, uint32_t n_groups, uint32_t group_size)
{
  PodCommunicator *comm = g_new0 (PodCommunicator, 1);
  size_t n = (size_t) n_groups * group_size;

  comm->name = g_strdup (name);
  comm->axis = axis;
  comm->n_groups = n_groups;
  comm->group_size = group_size;
  comm->members = g_new (uint32_t, n);
  comm->devices = g_new (uint32_t, n);
  return comm;
}

/* Once its members are in. Returns: @comm */
static PodCommunicator *
share_devices (PodCommunicator *comm)
{
  if (memcmp (comm->members, comm->devices, (size_t) comm->n_groups * comm->group_size * sizeof (uint32_t)) != 0)
    return comm;
  g_free (comm->devices);
  comm->devices = comm->members;
  return comm;
}

static PodCommunicator *
communicator_of_all (const PodMesh *mesh, const char *name, PodAxis axis, uint32_t n_groups, uint32_t group_size)
{
  PodCommunicator *comm = communicator_new (name, axis, n_groups, group_size);

  comm->n_spanned = mesh->n_ranks;
  comm->group_of_rank = g_new (uint32_t, mesh->n_ranks);
  memset (comm->group_of_rank, 0xff, mesh->n_ranks * sizeof (uint32_t));
  return comm;
}

/* Where the member at @index stands, from the first of its group over the axes of @mask. */
static uint32_t
member_offset (const PodMesh *mesh, unsigned mask, uint32_t index)
{
  uint32_t offset = 0;

  for (unsigned k = 0; k < POD_N_AXES; k++)
    if (mask & POD_MASK (pod_rank_numbering[k]))
      {
        offset += index % mesh->layout.degree[pod_rank_numbering[k]] * mesh->stride[pod_rank_numbering[k]];
        index /= mesh->layout.degree[pod_rank_numbering[k]];
      }
  return offset;
}

PodCommunicator *
pod_mesh_communicator (const PodMesh *mesh, unsigned mask, PodAxis axis, const char *name)
{
  g_autofree uint32_t *offset = NULL;
  PodCommunicator *comm;
  uint32_t group_size = 1;
  uint32_t n_groups = 0;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (mask & POD_MASK (a))
      group_size *= mesh->layout.degree[a];
  comm = communicator_of_all (mesh, name, axis, mesh->n_ranks / group_size, group_size);
  offset = g_new (uint32_t, group_size);
  for (uint32_t i = 0; i < group_size; i++)
    offset[i] = member_offset (mesh, mask, i);
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++) /* the lowest of a group comes first, at offset 0 */
    {
      if (comm->group_of_rank[rank] != UINT32_MAX)
        continue;
      for (uint32_t i = 0; i < group_size; i++)
        {
          const uint32_t member = rank + offset[i];

          comm->members[(size_t) n_groups * group_size + i] = member;
          comm->devices[(size_t) n_groups * group_size + i] = mesh->device_of_rank[member];
          comm->group_of_rank[member] = n_groups;
        }
      n_groups++;
    }
  for (unsigned k = 0; k < POD_N_AXES; k++)
    if (mask & POD_MASK (pod_rank_numbering[k]))
      for (unsigned f = 0; f < mesh->placement[pod_rank_numbering[k]].n_factors; f++)
        if (comm->n_factors < POD_MAX_FACTORS)
          comm->factors[comm->n_factors++] = mesh->placement[pod_rank_numbering[k]].factors[f];
  return share_devices (comm);
}

/* The factors of the first @block of an axis's ranks; none where they are no box. */
static void
block_factors (const PodAxisPlacement *placement, uint32_t block, PodCommunicator *comm)
{
  for (unsigned f = 0; f < placement->n_factors && block > 1; f++)
    {
      PodGroupFactor factor = placement->factors[f];
      const uint32_t size = MIN (factor.size, block);

      if (factor.size % size != 0 || block % size != 0)
        break;
      factor.size = size;
      comm->factors[comm->n_factors++] = factor;
      block /= size;
    }
  if (block > 1)
    comm->n_factors = 0;
}

PodCommunicator *
pod_mesh_blocks (const PodMesh *mesh, PodAxis axis, uint32_t block, const char *name)
{
  PodCommunicator *comm = communicator_of_all (mesh, name, axis, mesh->n_ranks / block, block);
  uint32_t n_groups = 0;

  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    {
      if (pod_mesh_coordinate (mesh, rank, axis) % block != 0)
        continue;
      for (uint32_t i = 0; i < block; i++)
        {
          const uint32_t member = rank + i * mesh->stride[axis];

          comm->members[(size_t) n_groups * block + i] = member;
          comm->devices[(size_t) n_groups * block + i] = mesh->device_of_rank[member];
          comm->group_of_rank[member] = n_groups;
        }
      n_groups++;
    }
  block_factors (&mesh->placement[axis], block, comm);
  return share_devices (comm);
}

PodCommunicator *
pod_mesh_expert_communicator (const PodMesh *mesh, PodExpertAxis expert_axis, PodAxis axis, const char *name)
{
  const uint32_t size = mesh->expert_degree[expert_axis];
  const uint32_t stride = mesh->expert_stride[expert_axis];
  PodCommunicator *comm = communicator_of_all (mesh, name, axis, mesh->n_ranks / size, size);
  uint32_t n_groups = 0;

  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    {
      if (rank / stride % size != 0)
        continue;
      for (uint32_t i = 0; i < size; i++)
        {
          comm->members[(size_t) n_groups * size + i] = rank + i * stride;
          comm->devices[(size_t) n_groups * size + i] = mesh->device_of_rank[rank + i * stride];
          comm->group_of_rank[rank + i * stride] = n_groups;
        }
      n_groups++;
    }
  comm->n_factors = pod_placement_factors (mesh->placement, stride, size, comm->factors);
  return share_devices (comm);
}

static uint32_t
node_of (const PodMesh *mesh, uint32_t rank)
{
  return pod_topology_node_of (mesh->topology, mesh->device_of_rank[rank]);
}

/* Members of a group on the node of its first one. */
static uint32_t
count_on_first_node (const PodMesh *mesh, const PodCommunicator *comm, uint32_t group)
{
  const uint32_t *members = comm->members + (size_t) group * comm->group_size;
  uint32_t n = 0;

  for (uint32_t i = 0; i < comm->group_size; i++)
    n += node_of (mesh, members[i]) == node_of (mesh, members[0]);
  return n;
}

/* Sorts the members of @group by node, in order of each node's first, @n_inside to a node: @sorted[node * n_inside + place].
 * False when they are not so many. O(members x nodes). */
static bool
sort_by_node (const PodMesh *mesh, const PodCommunicator *comm, uint32_t group, uint32_t n_inside, uint32_t *sorted)
{
  const uint32_t *members = comm->members + (size_t) group * comm->group_size;
  const uint32_t n_nodes = comm->group_size / n_inside;
  g_autofree uint32_t *n_of = g_new0 (uint32_t, n_nodes);
  uint32_t n_known = 0;

  for (uint32_t i = 0; i < comm->group_size; i++)
    {
      uint32_t node = 0;

      while (node < n_known && node_of (mesh, sorted[(size_t) node * n_inside]) != node_of (mesh, members[i]))
        node++;
      if (node == n_nodes || n_of[node] == n_inside)
        return false;
      n_known = MAX (n_known, node + 1);
      sorted[(size_t) node * n_inside + n_of[node]++] = members[i];
    }
  return true;
}

static void
set_member (const PodMesh *mesh, PodCommunicator *comm, uint32_t group, uint32_t index, uint32_t rank)
{
  comm->members[(size_t) group * comm->group_size + index] = rank;
  comm->devices[(size_t) group * comm->group_size + index] = mesh->device_of_rank[rank];
  comm->group_of_rank[rank] = group;
}

bool
pod_mesh_split_by_node (const PodMesh *mesh, const PodCommunicator *whole, PodCommunicator **out_inside, PodCommunicator **out_across)
{
  const uint32_t n_inside = count_on_first_node (mesh, whole, 0);
  const uint32_t n_nodes = whole->group_size / n_inside;
  g_autofree uint32_t *sorted = g_new (uint32_t, whole->group_size);
  g_autofree char *inside_name = g_strdup_printf ("%s in node", whole->name);
  g_autofree char *across_name = g_strdup_printf ("%s across nodes", whole->name);

  *out_inside = *out_across = NULL;
  if (whole->group_size % n_inside != 0)
    return false;
  *out_inside = communicator_of_all (mesh, inside_name, whole->axis, whole->n_groups * n_nodes, n_inside);
  *out_across = communicator_of_all (mesh, across_name, whole->axis, whole->n_groups * n_inside, n_nodes);
  for (uint32_t g = 0; g < whole->n_groups; g++)
    {
      if (!sort_by_node (mesh, whole, g, n_inside, sorted))
        {
          g_clear_pointer (out_inside, pod_communicator_free);
          g_clear_pointer (out_across, pod_communicator_free);
          return false;
        }
      for (uint32_t i = 0; i < whole->group_size; i++)
        {
          set_member (mesh, *out_inside, g * n_nodes + i / n_inside, i % n_inside, sorted[i]);
          set_member (mesh, *out_across, g * n_inside + i % n_inside, i / n_inside, sorted[i]);
        }
    }
  share_devices (*out_inside);
  share_devices (*out_across);
  return true;
}

PodCommunicator *
pod_mesh_edge (const PodMesh *mesh, uint32_t from_stage, uint32_t to_stage)
{
  g_autofree char *name = g_strdup_printf ("pp %u>%u", from_stage, to_stage);
  PodCommunicator *comm = communicator_new (name, POD_AXIS_PP, mesh->n_ranks / mesh->layout.degree[POD_AXIS_PP], 2);
  const uint32_t first_stage = MIN (from_stage, to_stage);

  g_assert (mesh->stride[POD_AXIS_PP] == comm->n_groups);
  comm->first_rank = first_stage * comm->n_groups;
  comm->n_spanned = (MAX (from_stage, to_stage) - first_stage + 1) * comm->n_groups;
  for (uint32_t g = 0; g < comm->n_groups; g++) /* stages are the slowest to change: each has its ranks one after the other */
    {
      const uint32_t pair[2] = { from_stage * comm->n_groups + g, to_stage * comm->n_groups + g };

      for (unsigned i = 0; i < 2; i++)
        {
          comm->members[2 * (size_t) g + i] = pair[i];
          comm->devices[2 * (size_t) g + i] = mesh->device_of_rank[pair[i]];
        }
    }
  return share_devices (comm);
}

void
pod_communicator_free (PodCommunicator *comm)
{
  if (comm == NULL)
    return;
  g_free (comm->name);
  if (comm->devices != comm->members)
    g_free (comm->devices);
  g_free (comm->members);
  g_free (comm->group_of_rank);
  g_free (comm);
}

void
pod_communicator_group (const PodCommunicator *comm, uint32_t index, PodGroup *out)
{
  *out = (PodGroup){ .n_devices = comm->group_size,
                     .devices = comm->devices + (size_t) index * comm->group_size,
                     .n_factors = comm->n_factors };
  memcpy (out->factors, comm->factors, sizeof out->factors);
}
