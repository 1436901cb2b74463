#pragma once

#include "base/dtype.h"
#include "parallel/array-mesh.h"
#include "parallel/sharding.h"

/* Sharded arrays and matmuls as the book writes them: A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]. */

#define POD_MAX_ARRAY_NAME 16
#define POD_MAX_LETTERS    26

/* A list of mesh axes that cut one dimension, the outermost first: part p of I_XY is x * |Y| + y.
 */
typedef struct
{
  unsigned n;
  uint8_t axis[POD_MAX_MESH_AXES];
} PodAxisList;

typedef struct
{
  char name[POD_MAX_ARRAY_NAME]; /* "" where none was given */
  bool has_dtype;
  PodDtype dtype;
  unsigned n_dims;
  char dim[POD_MAX_TENSOR_DIMS];      /* a letter; 0: a size stands in its place */
  uint64_t size[POD_MAX_TENSOR_DIMS]; /* 0 until it is known */
  PodAxisList axes[POD_MAX_TENSOR_DIMS];
  unsigned unreduced; /* mask of axes over which its parts still have to be summed: {U_X} */
} PodArray;

typedef struct
{
  bool is_matmul; /* else lhs is all there is */
  PodArray lhs;
  PodArray rhs;
  PodArray out;
} PodEinsum;

/* Reads ARRAY, or ARRAY * ARRAY -> ARRAY, where '.', '@' and the middle dot stand for '*' as well:
 *   ARRAY  [NAME] [DTYPE] '[' DIM {',' DIM} ']' [ '{' 'U_' AXES '}' ]
 *   DIM    LETTER or SIZE, then nothing or '_' AXES or '_{' AXES '}'
 * Axes are those of @mesh. A size in place of a letter is for an array alone. Errors INVALID: "at
 * 8, 'J_Q': …" with the position in characters from 1. O(length). */
bool pod_einsum_parse (const char *text, const PodArrayMesh *mesh, PodEinsum *out, GError **error);

/* Gives each letter its size from "I=8192,J=4096". Errors INVALID: a size that is missing, given
 * twice, 0, or of no dimension; INFEASIBLE: a dimension that the axes on it do not divide, with the
 * numbers. */
bool pod_einsum_set_shape (PodEinsum *einsum, const PodArrayMesh *mesh, const char *shape,
                           GError **error);

/* "bf16[I_X,J]" with the name before it. Returns: (transfer full) */
char *pod_array_to_text (const PodArray *array, const PodArrayMesh *mesh);
/* Returns: (transfer full) */
char *pod_einsum_to_text (const PodEinsum *einsum, const PodArrayMesh *mesh);

/* Position of the dimension, -1: none. */
int pod_array_find (const PodArray *array, char dim);
/* Mask of the axes that cut it. */
unsigned pod_array_axes (const PodArray *array);
/* Elements of dimension @dim, of the array, on one device. */
uint64_t pod_array_local_size (const PodArray *array, const PodArrayMesh *mesh, unsigned dim);
/* Bytes on one device. */
double pod_array_local_bytes (const PodArray *array, const PodArrayMesh *mesh);
/* Bytes of one whole copy. */
double pod_array_bytes (const PodArray *array);
/* The same without the order of the axes, for pod_sharded_matmul(). */
PodSharding pod_array_sharding (const PodArray *array);
