#include "base/surface.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

static PodSurface *
make_surface (void)
{
  const char *const nodes[] = { "1 4 64", "2 8" };
  g_autoptr (GError) error = NULL;
  PodSurface *surface = pod_surface_new (2, nodes, &error);

  ck_assert_msg (surface != NULL, "%s", error != NULL ? error->message : "no error");
  ck_assert_uint_eq (surface->n_values, 6);
  ck_assert_msg (pod_surface_parse_values (surface, "\n 100 200\n 300 -400\n 500 600\n", &error),
                 "%s", error != NULL ? error->message : "no error");
  return surface;
}

static double
value_at (const PodSurface *surface, double x, double y)
{
  const double at[] = { x, y };

  return pod_surface_at (surface, at);
}

/* At the nodes their values; past the ends the end's; half way in the logarithm, the mean: 2
 * between 1 and 4, 16 between 4 and 64, 4 between 2 and 8. */
START_TEST (is_linear_in_logarithms)
{
  g_autoptr (PodSurface) surface = make_surface ();

  ck_assert_double_eq_tol (value_at (surface, 1, 2), 0.1, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 4, 8), -0.4, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 64, 8), 0.6, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 0, 0.5), 0.1, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 1e9, 1e9), 0.6, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 2, 2), 0.2, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 16, 2), 0.4, 1e-12);
  ck_assert_double_eq_tol (value_at (surface, 2, 4), (0.1 + 0.2 + 0.3 - 0.4) / 4, 1e-12);
}
END_TEST

START_TEST (corners_add_up_to_one)
{
  g_autoptr (PodSurface) surface = make_surface ();

  for (double x = 0.5; x < 200; x *= 1.3)
    {
      const double at[] = { x, 3.0 };
      PodSurfaceCorners corners;
      double sum = 0.0;

      pod_surface_corners (surface, at, &corners);
      ck_assert_uint_eq (corners.n, 4);
      for (unsigned i = 0; i < corners.n; i++)
        {
          ck_assert_uint_lt (corners.indices[i], surface->n_values);
          ck_assert_double_ge (corners.weights[i], 0.0);
          sum += corners.weights[i];
        }
      ck_assert_double_eq_tol (sum, 1.0, 1e-12);
    }
}
END_TEST

START_TEST (text_reads_back)
{
  g_autoptr (PodSurface) surface = make_surface ();
  g_autoptr (PodSurface) copy = pod_surface_copy (surface);
  g_autofree char *axis = pod_surface_format_axis (&surface->axes[0]);
  g_autofree char *values = NULL;

  ck_assert_str_eq (axis, "1 4 64");
  copy->values[1] = 0.20049;
  pod_surface_round (copy);
  ck_assert_double_eq (copy->values[1], 0.2);
  values = pod_surface_format_values (copy, " ");
  ck_assert_str_eq (values, " 100 200\n 300 -400\n 500 600\n");
}
END_TEST

static const struct
{
  const char *axis;
  const char *values;
  const char *message;
} wrong[] = {
  { "1", "", "two nodes or more" },
  { "4 1", "", "ascending" },
  { "0 1", "", "above 0" },
  { "1 x", "", "x" },
  { "1 2", "1 2 3", "4 nodes has 3 values" },
  { "1 2", "1 2 3 4 5", "4 nodes has 5 values" },
  { "1 2", "1 2 3.5 4", "thousandths" },
  { "1 2", "1 2 3 10001", "-10000 to 10000" },
  { "1 2", "1 2 3 nan", "got 'nan'" },
};

START_TEST (wrong_text_is_refused)
{
  const char *const nodes[] = { wrong[_i].axis, "1 2" };
  g_autoptr (GError) error = NULL;
  g_autoptr (PodSurface) surface = pod_surface_new (2, nodes, &error);

  if (surface != NULL)
    ck_assert (!pod_surface_parse_values (surface, wrong[_i].values, &error));
  ck_assert_ptr_nonnull (error);
  ck_assert_msg (strstr (error->message, wrong[_i].message) != NULL, "got: %s", error->message);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("surface");
  TCase *tcase = tcase_create ("surface");

  tcase_add_test (tcase, is_linear_in_logarithms);
  tcase_add_test (tcase, corners_add_up_to_one);
  tcase_add_test (tcase, text_reads_back);
  tcase_add_loop_test (tcase, wrong_text_is_refused, 0, G_N_ELEMENTS (wrong));
  suite_add_tcase (suite, tcase);
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
