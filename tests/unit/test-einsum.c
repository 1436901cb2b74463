#include "parallel/einsum.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"

static PodArrayMesh
mesh_of (const char *text)
{
  PodArrayMesh mesh;
  g_autoptr (GError) error = NULL;

  ck_assert_msg (pod_array_mesh_parse (text, &mesh, &error), "%s: %s", text,
                 error != NULL ? error->message : "");
  return mesh;
}

/* ---- arrays and matmuls ---- */

START_TEST (test_reads)
{
  static const struct
  {
    const char *text;
    const char *canonical;
  } cases[] = {
    { "A[I]", "A[I]" },
    { "A[I_X, J_Y]", "A[I_X, J_Y]" },
    { "  A [ I_XY,J ] ", "A[I_XY, J]" },
    { "A[I_{YX},J]", "A[I_YX, J]" },
    { "A[I_{Y, X},J]", "A[I_YX, J]" },
    { "bf16[I_X]", "bf16[I_X]" },
    { "W int8[D, F_Y]", "W int8[D, F_Y]" },
    { "fp32[1024_XY, 4096]", "fp32[1024_XY, 4096]" },
    { "C[I, K]{U_X}", "C[I, K]{U_X}" },
    { "C[I, K_Y] { U_{X} }", "C[I, K_Y]{U_X}" },
    { "A[I_X,J_Y]*B[J_Y,K]->C[I_X,K]", "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]" },
    { "A[I,J] . B[J,K] -> C[I,K]{U_XY}", "A[I, J] * B[J, K] -> C[I, K]{U_XY}" },
    { "[I,J] @ [J,K] -> [I,K]", "A[I, J] * B[J, K] -> C[I, K]" },
    { "x int8[B,D] \302\267 w bf16[D,F] -> y[B,F]", "x int8[B, D] * w bf16[D, F] -> y[B, F]" },
    { "A[G_X,I,J] * B[G_X,J,K] -> C[G_X,I,K]", "A[G_X, I, J] * B[G_X, J, K] -> C[G_X, I, K]" },
  };
  PodArrayMesh mesh = mesh_of ("X=2,Y=4");

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      PodEinsum einsum, again;
      g_autoptr (GError) error = NULL;
      g_autofree char *text = NULL;
      g_autofree char *second = NULL;

      ck_assert_msg (pod_einsum_parse (cases[i].text, &mesh, &einsum, &error), "%s: %s",
                     cases[i].text, error != NULL ? error->message : "");
      text = pod_einsum_to_text (&einsum, &mesh);
      ck_assert_str_eq (text, cases[i].canonical);
      ck_assert (pod_einsum_parse (text, &mesh, &again, NULL));
      second = pod_einsum_to_text (&again, &mesh);
      ck_assert_str_eq (second, text);
    }
}
END_TEST

START_TEST (test_refuses)
{
  static const struct
  {
    const char *text;
    const char *message; /* its beginning */
  } cases[] = {
    { "", "at 1, the end: expected an array such as A[I_X, J]" },
    { "A", "at 2, the end: expected an array" },
    { "A[]", "at 3, ']': expected a dimension" },
    { "A[I", "at 4, the end: expected ',' or ']'" },
    { "A[I,]", "at 5, ']': expected a dimension" },
    { "A[I_]", "at 5, ']': expected axes of the mesh behind '_'" },
    { "A[I_Q]", "at 5, 'Q]': the mesh X=2,Y=4 has no axis Q" },
    { "A[I_X,J_X]", "at 9, 'X]': axis X stands twice in this array" },
    { "A[I_XX]", "at 6, 'X]': axis X stands twice" },
    { "A[I_{X]", "at 7, ']': expected '}'" },
    { "A[I,I]", "at 5, 'I]': dimension I stands twice in this array" },
    { "A[IJ]", "at 4, 'J]': a dimension is one letter" },
    { "A[I,J,K,L,M]", "at 11, 'M]': an array has at most 4 dimensions" },
    { "A[0]", "at 3, '0]': a size of 1 or more is needed" },
    { "A[99999999999999999999999]", "at 3, '999999999999': a size of 1 or more" },
    { "A bf17[I]", "at 3, 'bf17[I]': 'bf17' is no dtype" },
    { "bf16 A[I]", "at 6, 'A[I]': 'A' is no dtype" },
    { "ANameThatIsTooLong[I]", "at 1, 'ANameThatIsT': a name has at most 15 letters" },
    { "A[I]{X}", "at 6, 'X}': expected U_ and axes" },
    { "A[I_X]{U_X}", "at 10, 'X}': axis X stands twice" },
    { "A[I]{U_X", "at 9, the end: expected '}'" },
    { "A[I] B[J]", "at 6, 'B[J]': expected '*' and the second array" },
    { "A[I,J]*B[J,K]", "at 14, the end: expected '->' and the result" },
    { "A[I,J]*B[J,K]->", "at 16, the end: expected an array" },
    { "A[I,J]*B[J,K]->C[I,K] x", "at 23, 'x': nothing may follow the result" },
    { "A[I,J]*B[J,K]->C[I,L]", "dimension K of B is neither in A nor in the result C" },
    { "A[I,J]*B[J,K]->C[I,K,L]", "dimension 3 of the result C is in neither operand" },
    { "A[I,J]*B[J,K]->C[I,J,K]", "no dimension is summed" },
    { "A[4,J]*B[J,K]->C[I,K]", "A: 4 stands in place of a letter" },
    { "A[I,J]{U_X}*B[J,K]->C[I,K]", "A: only the result can stay unreduced" },
    { "A[\303\244]", "at 3, '\303\244]': expected a dimension" },
    { "A[\377]", "the expression is no UTF-8 text" },
  };
  PodArrayMesh mesh = mesh_of ("X=2,Y=4");

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      PodEinsum einsum;
      g_autoptr (GError) error = NULL;

      ck_assert_msg (!pod_einsum_parse (cases[i].text, &mesh, &einsum, &error), "%s was taken",
                     cases[i].text);
      ck_assert (error->domain == POD_ERROR && error->code == POD_ERROR_INVALID);
      ck_assert_msg (g_str_has_prefix (error->message, cases[i].message), "%s: %s", cases[i].text,
                     error->message);
    }
}
END_TEST

/* Every text that a changed, dropped or doubled byte makes of a good one is taken or refused. */
START_TEST (test_torn)
{
  static const char good[] = "A bf16[I_{XY}, J] * B[J, K_Y] -> C[I_X, K]{U_Y}";
  PodArrayMesh mesh = mesh_of ("X=2,Y=4");

  for (size_t at = 0; at < sizeof good - 1; at++)
    for (unsigned byte = 0; byte < 256; byte++)
      {
        char torn[sizeof good];
        PodEinsum einsum;
        g_autoptr (GError) error = NULL;

        memcpy (torn, good, sizeof good);
        torn[at] = (char) byte;
        if (!pod_einsum_parse (torn, &mesh, &einsum, &error))
          ck_assert_ptr_nonnull (error);
        g_clear_error (&error);
        if (!pod_einsum_parse (good + at, &mesh, &einsum, &error))
          ck_assert_ptr_nonnull (error);
      }
}
END_TEST

/* I=12 over X (2) and Y (3); 4 bytes an element: 12 x 10 x 4 = 480 bytes in all. */
START_TEST (test_facts)
{
  PodArrayMesh mesh = mesh_of ("X=2,Y=3,Z=5");
  PodEinsum einsum;
  PodSharding sharding;

  ck_assert (pod_einsum_parse ("fp32[I_YX, J_Z]", &mesh, &einsum, NULL));
  ck_assert (pod_einsum_set_shape (&einsum, &mesh, "I=12, J=10", NULL));
  ck_assert_uint_eq (pod_array_local_size (&einsum.lhs, &mesh, 0), 2);
  ck_assert_uint_eq (pod_array_local_size (&einsum.lhs, &mesh, 1), 2);
  ck_assert_double_eq (pod_array_bytes (&einsum.lhs), 480);
  ck_assert_double_eq (pod_array_local_bytes (&einsum.lhs, &mesh), 16);
  ck_assert_uint_eq (pod_array_axes (&einsum.lhs), 7);
  ck_assert_int_eq (pod_array_find (&einsum.lhs, 'J'), 1);
  ck_assert_int_eq (pod_array_find (&einsum.lhs, 'K'), -1);
  sharding = pod_array_sharding (&einsum.lhs);
  ck_assert_uint_eq (sharding.axes[0], 3);
  ck_assert_uint_eq (sharding.axes[1], 4);
}
END_TEST

START_TEST (test_shapes)
{
  static const struct
  {
    const char *shape;
    int code; /* -1: taken */
    const char *message;
  } cases[] = {
    { "I=8,J=8", -1, "" },
    { "I=1Ki,J=8", -1, "" },
    { "I=8", POD_ERROR_INVALID, "--shape: J is missing, as in J=4096" },
    { NULL, POD_ERROR_INVALID, "--shape: I is missing" },
    { "I=8,J=8,K=8", POD_ERROR_INVALID, "--shape: no array has a dimension K" },
    { "I=8,I=8,J=8", POD_ERROR_INVALID, "--shape: I stands twice" },
    { "I=0,J=8", POD_ERROR_INVALID, "--shape: I must be 1 or more, got 0" },
    { "I=x,J=8", POD_ERROR_INVALID, "--shape: I: " },
    { "I8,J=8", POD_ERROR_INVALID, "--shape: expected LETTER=SIZE" },
    { "I=9,J=8", POD_ERROR_INFEASIBLE,
      "--shape: dimension 1 of A[I_X, J_Y]: 9 does not divide over 2 parts, 1 are left over; the "
      "next sizes that do are 8 and 10" },
    { "I=8,J=3", POD_ERROR_INFEASIBLE,
      "--shape: dimension 2 of A[I_X, J_Y]: 3 does not divide over 4 parts, 3 are left over; the "
      "next sizes that do are 4 and 4" },
  };
  PodArrayMesh mesh = mesh_of ("X=2,Y=4");

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      PodEinsum einsum;
      g_autoptr (GError) error = NULL;

      ck_assert (pod_einsum_parse ("A[I_X, J_Y]", &mesh, &einsum, NULL));
      ck_assert_int_eq (pod_einsum_set_shape (&einsum, &mesh, cases[i].shape, &error),
                        cases[i].code < 0);
      if (cases[i].code < 0)
        continue;
      ck_assert_int_eq (error->code, cases[i].code);
      ck_assert_msg (g_str_has_prefix (error->message, cases[i].message), "%s", error->message);
    }
}
END_TEST

/* ---- meshes ---- */

START_TEST (test_mesh_refused)
{
  static const char *const bad[] = { "",
                                     "X",
                                     "X=",
                                     "X=0",
                                     "x=4",
                                     "XY=4",
                                     "X=4,X=2",
                                     "X=4,",
                                     "X=-1",
                                     "X=1.5",
                                     "X=9999999999",
                                     "A=2,B=2,C=2,D=2,E=2,F=2,G=2",
                                     "X=4096,Y=4096" };

  for (unsigned i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      PodArrayMesh mesh;
      g_autoptr (GError) error = NULL;

      ck_assert_msg (!pod_array_mesh_parse (bad[i], &mesh, &error), "%s was taken", bad[i]);
      ck_assert_ptr_nonnull (error);
    }
}
END_TEST

/* Where the axes go; "!…": refused with these words. */
START_TEST (test_placement)
{
  static const struct
  {
    const char *topology;
    const char *mesh;
    const char *map;
    const char *order;
    const char *placement;
  } cases[] = {
    { "tpu-v5e:4x4", "X=4,Y=4", NULL, NULL, "X=x Y=y" },
    { "tpu-v5e:2x4", "X=4,Y=2", NULL, NULL, "X=y Y=x" },
    { "tpu-v4:4x4x8", "X=8,Y=4,Z=4", NULL, NULL, "X=z Y=x Z=y" },
    { "tpu-v5e:4x4", "X=16", NULL, NULL, "X=x,y" },
    { "tpu-v5e:4x4", "X=2,Y=8", NULL, NULL, "X=x:2 Y=x:2,y" },
    { "tpu-v5e:4x4", "X=1,Y=4", NULL, NULL, "Y=x" },
    { "tpu-v2:2x2", "X=4,Y=2", NULL, NULL, "X=x,y Y=core" },
    { "tpu-v5e:4x4*2", "X=2,Y=16", NULL, NULL, "X=x:2 Y=x:2,y,dcn" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=y Y=x", NULL, "X=y Y=x" },
    { "tpu-v5e:4x4", "X=4,Y=4", "Y=x:2,y:2 X=x,y", NULL, "Y=x:2,y:2 X=x:2,y:2" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=x:2,y:2 Y=x,y", NULL, "X=x:2,y:2 Y=x:2,y:2" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=x", NULL, "!--map: Y=4 has no place" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=x Q=y", NULL, "!--map: 'Q=y' is not" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=x Y=w", NULL, "!--map: Y: unknown physical axis 'w'" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=x:3 Y=y", NULL, "!--map: X=x:3: axis x has 4 devices" },
    { "tpu-v5e:4x4", "X=4,Y=4", "X=x: Y=y", NULL, "!--map: X: " },
    { "tpu-v5e:4x4", "X=4,Y=4", NULL, "X,Y", "!--order is for switched machines" },
    { "tpu-v5e:4x4", "X=8,Y=4", NULL, NULL, "!the mesh X=8,Y=4 has 32 devices" },
    { "tpu-v5e:4x4", "X=3", NULL, NULL, "!the mesh X=3 does not divide" },
    { "h100:8x2", "X=2,Y=8", NULL, NULL, "Y,X" },
    { "h100:8x2", "X=2,Y=8", NULL, "X,Y", "X,Y" },
    { "h100:8x2", "X=2,Y=8", NULL, "X", "X,Y" },
    { "h100:8x2", "X=2,Y=8", NULL, "X,X", "!--order: 'X' is none of the axes" },
    { "h100:8x2", "X=2,Y=8", "X=x", NULL, "!--map is for tori" },
  };

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      PodArrayMesh mesh = mesh_of (cases[i].mesh);
      g_autoptr (GError) error = NULL;
      g_autoptr (PodTopology) topology = pod_topology_load (cases[i].topology, &error);
      g_autofree char *text = NULL;
      g_autofree char *again = NULL;
      bool is_refused = *cases[i].placement == '!';

      ck_assert_msg (topology != NULL, "%s", error != NULL ? error->message : "");
      ck_assert_msg (pod_array_mesh_place (&mesh, topology, cases[i].map, cases[i].order, &error)
                         != is_refused,
                     "%u: %s", i, error != NULL ? error->message : "it was placed");
      if (is_refused)
        ck_assert_msg (g_str_has_prefix (error->message, cases[i].placement + 1), "%s",
                       error->message);
      else
        {
          text = pod_array_mesh_placement_text (&mesh);
          ck_assert_str_eq (text, cases[i].placement);
          if (topology->fabric == POD_FABRIC_TORUS)
            ck_assert (pod_array_mesh_place (&mesh, topology, text, NULL, NULL));
          else
            ck_assert (pod_array_mesh_place (&mesh, topology, NULL, text, NULL));
          again = pod_array_mesh_placement_text (&mesh);
          ck_assert_str_eq (again, text);
        }
    }
}
END_TEST

/* The groups along any axes have each device once; two that are one ring are joined to one. */
START_TEST (test_groups)
{
  static const struct
  {
    const char *topology;
    const char *mesh;
  } cases[] = { { "tpu-v4:4x4x8", "X=2,Y=8,Z=8" },
                { "tpu-v2:2x2", "X=4,Y=2" },
                { "h100:8x4", "X=2,Y=4,Z=4" },
                { "tpu-v5e:4x4*2", "X=4,Y=8" } };

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      PodArrayMesh mesh = mesh_of (cases[i].mesh);
      g_autoptr (PodTopology) topology = pod_topology_load (cases[i].topology, NULL);

      ck_assert (pod_array_mesh_place (&mesh, topology, NULL, NULL, NULL));
      for (unsigned mask = 0; mask < 1U << mesh.n_axes; mask++)
        {
          uint32_t size = pod_array_mesh_size (&mesh, mask),
                   n_groups = pod_array_mesh_n_devices (&mesh) / size;
          g_autofree uint8_t *seen = g_new0 (uint8_t, topology->n_devices);

          for (uint32_t index = 0; index < n_groups; index++)
            {
              g_auto (PodArrayGroup) group = { .devices = NULL };

              pod_array_mesh_group (&mesh, mask, index, &group);
              ck_assert_uint_eq (group.group.n_devices, size);
              for (uint32_t k = 0; k < size; k++)
                {
                  ck_assert_uint_lt (group.devices[k], topology->n_devices);
                  ck_assert_uint_eq (seen[group.devices[k]]++, 0);
                }
              if (i == 0 && mask == 3) /* x:2 and x:2,y are the ring x and the ring y */
                {
                  ck_assert_uint_eq (group.group.n_factors, 2);
                  ck_assert_uint_eq (group.group.factors[0].size, 4);
                }
            }
        }
    }
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("einsum");
  TCase *tcase = tcase_create ("all");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_add_test (tcase, test_reads);
  tcase_add_test (tcase, test_refuses);
  tcase_add_test (tcase, test_torn);
  tcase_add_test (tcase, test_facts);
  tcase_add_test (tcase, test_shapes);
  tcase_add_test (tcase, test_mesh_refused);
  tcase_add_test (tcase, test_placement);
  tcase_add_test (tcase, test_groups);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
