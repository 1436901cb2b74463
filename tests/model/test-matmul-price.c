#include "exec/matmul-price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

/* A machine, a mesh on it and a matmul, priced. */
typedef struct
{
  PodTopology *topology;
  PodArrayMesh mesh;
  PodEinsum einsum;
  PodMatmulStrategies *strategies;
  GPtrArray *prices;
} Case;

typedef struct
{
  const char *topology;
  const char *mesh;
  const char *map;
  const char *text;
  const char *shape;
  PodFidelity fidelity;
} Question;

static void
ask (Case *answer, const Question *question)
{
  g_autoptr (GError) error = NULL;
  bool is_good;

  *answer = (Case){ .topology = pod_topology_load (question->topology, &error) };
  ck_assert_msg (answer->topology != NULL, "%s", error != NULL ? error->message : "");
  is_good = pod_array_mesh_parse (question->mesh, &answer->mesh, &error)
            && pod_array_mesh_place (&answer->mesh, answer->topology, question->map, NULL, &error)
            && pod_einsum_parse (question->text, &answer->mesh, &answer->einsum, &error)
            && pod_einsum_set_shape (&answer->einsum, &answer->mesh, question->shape, &error);
  ck_assert_msg (is_good, "%s", error != NULL ? error->message : "");
  answer->einsum.lhs.dtype = answer->einsum.rhs.dtype = answer->einsum.out.dtype = POD_DTYPE_BF16;
  answer->strategies = pod_matmul_strategies_new (&answer->einsum, &answer->mesh, NULL, &error);
  ck_assert_msg (answer->strategies != NULL, "%s", error != NULL ? error->message : "");
  answer->prices
      = pod_matmul_price (answer->strategies,
                          &(PodMatmulPricing){ question->fidelity, POD_DTYPE_BF16, NULL, NULL }, &error);
  ck_assert_msg (answer->prices != NULL, "%s", error != NULL ? error->message : "");
}

static void
case_clear (Case *answer)
{
  g_ptr_array_unref (answer->prices);
  pod_matmul_strategies_free (answer->strategies);
  pod_topology_free (answer->topology);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

/* The strategy of that name. */
static const PodPricedMatmul *
find (const Case *answer, const char *name)
{
  for (guint i = 0; i < answer->prices->len; i++)
    {
      const PodPricedMatmul *priced = g_ptr_array_index (answer->prices, i);
      g_autofree char *text = pod_matmul_strategy_name (answer->strategies, priced->strategy);

      if (strcmp (text, name) == 0)
        return priced;
    }
  ck_abort_msg ("no strategy %s", name);
  return NULL;
}

/* Every collective costs what it costs alone (podsim collective), on a ring that it has for itself:
 *   A[I, J_X] . B[J_X, K] on a ring of 4 of v5p, C 2 x 4096 x 8192 bytes: 2 V / W, W = 1.8e11. */
START_TEST (test_alone)
{
  g_auto (Case) answer = { .topology = NULL };
  const PodPricedMatmul *priced;
  const PodPricedStep *step;

  ask (&answer, &(Question){ "tpu-v5p:4x4x4", "X=4,Y=4,Z=4", NULL, "A[I,J_X] * B[J_X,K] -> C[I,K]",
                             "I=4096,J=8192,K=8192", POD_FIDELITY_BOOK });
  priced = find (&answer, "J_X");
  ck_assert_uint_eq (priced->steps->len, 1);
  step = g_ptr_array_index (priced->steps, 0);
  ck_assert_double_eq_tol (step->time_s, 2.0 * 2 * 4096 * 8192 / 1.8e11, 1e-15);
  ck_assert_double_eq (step->contention_ratio, 1);
  ck_assert_uint_eq (step->n_groups, 16);
  ck_assert_double_eq_tol (step->device_bytes, 2 * 0.75 * 2 * 4096 * 8192, 1e-6);
  /* 2 I (J/4) K / C */
  ck_assert_double_eq_tol (priced->compute.time_s, 2.0 * 4096 * 2048 * 8192 / 4.59e14, 1e-15);
}
END_TEST

/* X = x:2 inside, Y the x:2 around it on a line of 4 (v5e): the pairs of Y stand 0-2 and 1-3, and
 * both pass the link 1-2. Alone a gather of V over a pair at distance 2 puts V/2 on each of two
 * links; both together V on the middle one. */
START_TEST (test_contention)
{
  g_auto (Case) answer = { .topology = NULL };
  const PodPricedStep *step;

  ask (&answer, &(Question){ "tpu-v5e:4x1", "X=2,Y=2", "X=x:2 Y=x:2", "A[I,J_Y] * B[J,K] -> C[I,K]",
                             "I=4096,J=4096,K=4096", POD_FIDELITY_IDEAL });
  step = g_ptr_array_index (find (&answer, "replicated")->steps, 0);
  ck_assert_double_eq_tol (step->contention_ratio, 2, 1e-9);
  ck_assert_double_eq_tol (
      step->rate_s, 2.0 * 4096 * 4096 / answer.topology->chip->ici_bytes_per_s.nominal, 1e-9);
}
END_TEST

/* On GPUs: groups over nodes that stand on NICs of their own do not slow each other, one whose ring
 * passes a thin uplink does. */
START_TEST (test_contention_of_nodes)
{
  static const char *const machines[] = { "h100:8x4", "h100:8x4,rails=1,unit=1,tree=2,oversub=4" };

  for (unsigned i = 0; i < G_N_ELEMENTS (machines); i++)
    {
      g_auto (Case) answer = { .topology = NULL };
      const PodPricedStep *step;

      ask (&answer, &(Question){ machines[i], "X=4,Y=8", NULL, "A[I,J_X] * B[J,K] -> C[I,K]",
                                 "I=8192,J=8192,K=8192", POD_FIDELITY_IDEAL });
      step = g_ptr_array_index (find (&answer, "replicated")->steps, 0);
      ck_assert_uint_eq (step->n_groups, 8);
      ck_assert_double_ge (step->contention_ratio, 1);
      if (i == 1) /* 8 NICs of a node over 2 NICs' worth of uplink */
        ck_assert_double_ge (
            step->rate_s, 0.75 * 2 * 8192 * 8192
                              / (2 * answer.topology->chip->nic_bytes_per_s.nominal) * 8 * 0.999);
    }
}
END_TEST

/* The three variants of a collective matmul, with N pieces: nothing hides better than max(compute,
 * communication), nothing is worse than both in turn, and where compute is long all of it hides. */
START_TEST (test_overlap)
{
  static const struct
  {
    const char *text;
    const char *name;
    PodCollectiveKind kind;
  } variants[] = {
    { "A[I_X,J] * B[J,K_X] -> C[I,K_X]", "K_X", POD_ALL_GATHER },
    { "A[I,J_X] * B[J_X,K] -> C[I_X,K]", "J_X", POD_REDUCE_SCATTER },
    { "A[I,J_X] * B[J_X,K] -> C[I,K]", "J_X", POD_ALL_REDUCE },
  };
  static const char *const shapes[] = { "I=512,J=512,K=512", "I=4096,J=65536,K=65536" };

  for (unsigned v = 0; v < G_N_ELEMENTS (variants); v++)
    for (unsigned s = 0; s < G_N_ELEMENTS (shapes); s++)
      for (PodFidelity fidelity = POD_FIDELITY_BOOK; fidelity <= POD_FIDELITY_CALIBRATED;
           fidelity++)
        {
          g_auto (Case) answer = { .topology = NULL };
          const PodPricedMatmul *priced;
          const PodPricedStep *step;
          double compute_s;

          ask (&answer,
               &(Question){ "tpu-v5p:8x4x4", "X=8", NULL, variants[v].text, shapes[s], fidelity });
          priced = find (&answer, variants[v].name);
          compute_s = priced->compute.time_s;
          step = g_ptr_array_index (priced->steps, 0);
          ck_assert_uint_eq (priced->steps->len, 1);
          ck_assert_int_eq (step->kind, variants[v].kind);
          ck_assert_uint_eq (priced->n_pieces, 8);
          ck_assert_double_eq (priced->serial_s, compute_s + priced->comm_s);
          ck_assert_double_ge (priced->overlapped_s, MAX (compute_s, priced->comm_s));
          ck_assert_double_le (priced->overlapped_s, priced->serial_s);
          if (s == 1)
            ck_assert_double_eq (priced->overlapped_s, compute_s);
          else if (fidelity != POD_FIDELITY_BOOK)
            ck_assert_double_eq_tol (priced->overlapped_s, priced->comm_s + compute_s / 8, 1e-15);
        }
}
END_TEST

/* critical: with that size, arithmetic and communication by rates take the same. A loop's size is
 * set to a power of two near it on both sides, and which of the two is longer changes. */
START_TEST (test_critical)
{
  for (unsigned power = 10; power < 17; power++)
    {
      g_auto (Case) answer = { .topology = NULL };
      g_autofree char *shape = g_strdup_printf ("I=4096,J=%u,K=4096", 1U << power);
      const PodPricedMatmul *priced;

      ask (&answer, &(Question){ "tpu-v5p:4x4x4", "X=4", NULL, "A[I,J_X] * B[J_X,K] -> C[I,K]",
                                 shape, POD_FIDELITY_BOOK });
      priced = find (&answer, "J_X");
      ck_assert_double_eq_tol (priced->critical[1], 20400, 1e-6); /* 4 x 2 C/W, whatever J is */
      ck_assert (priced->compute.flop_s >= priced->comm_s ? (1U << power) >= 20400
                                                          : (1U << power) < 20400);
      ck_assert (isinf (find (&answer, "I_X")->critical[1])); /* gathers of A and B grow with J as
                                                                 arithmetic does, and faster */
    }
}
END_TEST

/* By time in turn, and never faster than ideal at fidelity calibrated. */
START_TEST (test_order_and_bounds)
{
  static const char *const machines[] = { "tpu-v5e:4x4", "tpu-v4:4x4x4", "h100:8x2", "tpu-v2:2x4" };

  for (unsigned i = 0; i < G_N_ELEMENTS (machines); i++)
    {
      g_auto (Case) ideal = { .topology = NULL };
      g_auto (Case) calibrated = { .topology = NULL };
      Question question = { machines[i],
                            "X=4,Y=4",
                            NULL,
                            "A[I_X,J_Y] * B[J_Y,K] -> C[I_X,K]",
                            "I=4096,J=2048,K=8192",
                            POD_FIDELITY_IDEAL };
      double before_s = 0;

      ask (&ideal, &question);
      question.fidelity = POD_FIDELITY_CALIBRATED;
      ask (&calibrated, &question);
      ck_assert_uint_eq (ideal.prices->len, 16);
      for (guint k = 0; k < ideal.prices->len; k++)
        {
          const PodPricedMatmul *priced = g_ptr_array_index (ideal.prices, k);
          g_autofree char *name = pod_matmul_strategy_name (ideal.strategies, priced->strategy);

          ck_assert_double_ge (priced->serial_s, before_s - 1e-12);
          before_s = priced->serial_s;
          ck_assert_double_le (priced->serial_s, find (&calibrated, name)->serial_s * (1 + 1e-12));
        }
    }
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("matmul-price");
  TCase *tcase = tcase_create ("all");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 0);
  tcase_add_test (tcase, test_alone);
  tcase_add_test (tcase, test_contention);
  tcase_add_test (tcase, test_contention_of_nodes);
  tcase_add_test (tcase, test_overlap);
  tcase_add_test (tcase, test_critical);
  tcase_add_test (tcase, test_order_and_bounds);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
