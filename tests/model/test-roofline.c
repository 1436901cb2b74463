#include "chip/roofline.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

#include <check.h>

/* A chip with round numbers: C = 100 TFLOP/s (int8 200), W = 1 TB/s, so R = C/W = 100 FLOP/B (int8
 * 200); VMEM twenty times as fast, the host a hundredth. */
static PodChip
round_chip (void)
{
  return (PodChip){
    .name = (char *) "round",
    .family = POD_FAMILY_TPU,
    .devices_per_chip = 1,
    .cores_per_chip = 1,
    .peak_flops_per_s[POD_DTYPE_BF16] = { 100e12, 100e12 },
    .peak_flops_per_s[POD_DTYPE_INT8] = { 200e12, 200e12 },
    .vector_flops_per_s = { 5e12, 5e12 },
    .hbm_bytes_per_s = { 1e12, 1e12 },
    .vmem_bytes_per_s = { 20e12, 20e12 },
    .host_bytes_per_s = { 10e9, 10e9 },
    .mxu_dim = 128,
    .matmul_efficiency = 0.8,
    .hbm_efficiency = 0.8,
    .attention_efficiency = 0.5,
    .launch_s = 1e-6,
  };
}

static PodRooflineInput
matmul_input (uint64_t b, uint64_t d, uint64_t f)
{
  return (PodRooflineInput){
    .op = POD_ROOFLINE_MATMUL,
    .dtype = POD_DTYPE_BF16,
    .weight_dtype = POD_DTYPE_BF16,
    .out_dtype = POD_DTYPE_BF16,
    .compute_dtype = POD_DTYPE_BF16,
    .matmul = { .groups = 1, .b = b, .d = d, .f = f },
  };
}

static PodRooflineInput
attention_input (uint64_t t, uint64_t s, uint64_t n, uint64_t k, bool is_causal)
{
  return (PodRooflineInput){
    .op = POD_ROOFLINE_ATTENTION,
    .dtype = POD_DTYPE_BF16,
    .compute_dtype = POD_DTYPE_BF16,
    .attention = { .b = 4, .t = t, .s = s, .n = n, .k = k, .h = 128, .is_causal = is_causal },
  };
}

static PodRoofline
compute (PodFidelity fidelity, const PodRooflineInput *input)
{
  PodChip chip = round_chip ();
  g_autoptr (GError) error = NULL;
  PodRoofline result = { .critical_batch = NAN };
  bool is_done = pod_roofline_compute (&chip, fidelity, input, &result, &error);

  ck_assert_msg (is_done, "%s", error != NULL ? error->message : "no error");
  return result;
}

/* X[500,1000].Y[1000,2000]: 2e9 FLOPs, 20 us; 2 x (0.5 + 2 + 1)e6 = 7e6 bytes, 7 us.
 * lower 20 us, upper 27 us, intensity 2e9/7e6 = 285.7, attained 100 TFLOP/s. */
START_TEST (test_matmul)
{
  PodRooflineInput input = matmul_input (500, 1000, 2000);
  PodRoofline result = compute (POD_FIDELITY_BOOK, &input);

  ck_assert_double_eq_tol (result.time.time_s, 20e-6, 1e-15);
  ck_assert_double_eq_tol (result.lower_bound_s, 20e-6, 1e-15);
  ck_assert_double_eq_tol (result.upper_bound_s, 27e-6, 1e-15);
  ck_assert_double_eq_tol (result.intensity_flops_per_byte, 2000.0 / 7, 1e-9);
  ck_assert_double_eq_tol (result.ridge_flops_per_byte, 100, 1e-9);
  ck_assert_double_eq_tol (result.attained_flops_per_s, 100e12, 1);
  ck_assert_int_eq (result.time.bound, POD_BOUND_COMPUTE);
}
END_TEST

/* D = 1000, F = 1000, bf16: B = 2 D F / (2 D F / 100 - 2 x 2000) = 2e6/16,000 = 125; rule R x 2/2 =
 * 100. int8 weights, bf16 the rest: 1e6/16,000 = 62.5; rule 50. */
START_TEST (test_critical_batch)
{
  PodRooflineInput input = matmul_input (1, 1000, 1000);
  PodRoofline result = compute (POD_FIDELITY_IDEAL, &input);

  ck_assert_double_eq_tol (result.critical_batch, 125, 1e-9);
  ck_assert_double_eq_tol (result.critical_batch_rule, 100, 1e-9);
  input.weight_dtype = POD_DTYPE_INT8;
  result = compute (POD_FIDELITY_IDEAL, &input);
  ck_assert_double_eq_tol (result.critical_batch, 62.5, 1e-9);
  ck_assert_double_eq_tol (result.critical_batch_rule, 50, 1e-9);
}
END_TEST

/* Narrow: 2 x 100 x 100 / 100 = 200 FLOPs' worth of bytes per row, which moves 2 x 200 = 400: never
 * compute-bound. */
START_TEST (test_no_critical_batch)
{
  PodRooflineInput input = matmul_input (1, 100, 100);

  ck_assert (isinf (compute (POD_FIDELITY_IDEAL, &input).critical_batch));
}
END_TEST

/* From the host R = 100e12/10e9 = 10,000, from VMEM 5: rules of 10,000 and 5. D = F = 100,000 from
 * the host: 2e10/(2e10/1e4 - 4e5) = 12,500. */
START_TEST (test_places)
{
  PodRooflineInput input = matmul_input (1, 100000, 100000);
  PodRoofline result;

  input.place = POD_PLACE_HOST;
  result = compute (POD_FIDELITY_BOOK, &input);
  ck_assert_double_eq_tol (result.critical_batch_rule, 10000, 1e-6);
  ck_assert_double_eq_tol (result.critical_batch, 12500, 1e-6);
  input.place = POD_PLACE_VMEM;
  result = compute (POD_FIDELITY_BOOK, &input);
  ck_assert_double_eq_tol (result.critical_batch_rule, 5, 1e-9);
  ck_assert_double_eq_tol (result.memory_bytes_per_s, 20e12, 1);
}
END_TEST

/* T = S = 200, as many KV heads as query heads: intensity T/2 = 100, exactly the ridge, so 200 is
 * the critical length. Under a mask 2 T (T + 1) against 4 T^2: critical 399. Four query heads to a
 * KV head: R x 2 x 5/8 = 125. */
START_TEST (test_self_attention)
{
  PodRooflineInput input = attention_input (200, 200, 8, 8, false);
  PodRoofline result = compute (POD_FIDELITY_BOOK, &input);

  ck_assert_double_eq_tol (result.intensity_flops_per_byte, 100, 1e-9);
  ck_assert_double_eq_tol (result.critical_batch, 200, 1e-9);
  input.attention.is_causal = true;
  ck_assert_double_eq_tol (compute (POD_FIDELITY_BOOK, &input).critical_batch, 399, 1e-9);
  input.attention.is_causal = false;
  input.attention.k = 2;
  ck_assert_double_eq_tol (compute (POD_FIDELITY_BOOK, &input).critical_batch, 125, 1e-9);
}
END_TEST

/* One query, S = 8192, G = 8: intensity S G/(S + G) = 7.992. Queries until compute-bound:
 * R e S/(G (2 S - R e)) = 200 x 8192/(8 x (16384 - 200)) = 12.654; rule 200/16 = 12.5. */
START_TEST (test_decode_attention)
{
  PodRooflineInput input = attention_input (1, 8192, 64, 8, false);
  PodRoofline result = compute (POD_FIDELITY_BOOK, &input);

  ck_assert_double_eq_tol (result.intensity_flops_per_byte, 8192.0 * 8 / 8200, 1e-9);
  ck_assert_double_eq_tol (result.critical_batch, 12.654473554, 1e-8);
  ck_assert_double_eq_tol (result.critical_batch_rule, 12.5, 1e-9);
  ck_assert_int_eq (result.time.bound, POD_BOUND_HBM);
}
END_TEST

/* 1e6 elements of 2 FLOPs, 4 + 4 bytes: 2e6/5e12 = 0.4 us against 8 us; ridge 5e12/1e12 = 5. The
 * book's kernels leave vector work out, but this one is asked for. */
START_TEST (test_vector)
{
  PodRooflineInput input = {
    .op = POD_ROOFLINE_VECTOR,
    .vector = { .elements = 1e6, .flops = 2, .read_bytes = 4, .write_bytes = 4 },
  };
  PodRoofline result = compute (POD_FIDELITY_BOOK, &input);

  ck_assert_double_eq_tol (result.time.time_s, 8e-6, 1e-15);
  ck_assert_double_eq_tol (result.ridge_flops_per_byte, 5, 1e-9);
  ck_assert_double_eq_tol (result.intensity_flops_per_byte, 0.25, 1e-12);
  ck_assert (isnan (result.critical_batch));
}
END_TEST

/* 1e9 bytes: 1 ms from HBM, 100 ms from the host; calibrated 1/0.8 ms and 1 us of launch. */
START_TEST (test_copy)
{
  PodRooflineInput input = { .op = POD_ROOFLINE_COPY, .copy = { .read_bytes = 1e9 } };

  ck_assert_double_eq_tol (compute (POD_FIDELITY_BOOK, &input).time.time_s, 1e-3, 1e-12);
  ck_assert_double_eq_tol (compute (POD_FIDELITY_CALIBRATED, &input).time.time_s, 1.251e-3, 1e-12);
  ck_assert_double_eq (compute (POD_FIDELITY_BOOK, &input).attained_flops_per_s, 0);
  input.place = POD_PLACE_HOST;
  ck_assert_double_eq_tol (compute (POD_FIDELITY_BOOK, &input).time.time_s, 0.1, 1e-12);
}
END_TEST

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static PodRooflineInput
random_input (uint64_t *state)
{
  uint64_t d = 1 + next_random (state) % 8192, f = 1 + next_random (state) % 8192;
  PodRooflineInput input = matmul_input (1 + next_random (state) % 4096, d, f);
  uint64_t k = 1 + next_random (state) % 8, s = 1 + next_random (state) % 16384;

  input.weight_dtype = next_random (state) % 2 == 0 ? POD_DTYPE_INT8 : POD_DTYPE_BF16;
  input.attention
      = attention_input (1, s, k * (1 + next_random (state) % 8), k, next_random (state) % 2 == 0)
            .attention;
  input.attention.t = next_random (state) % 3 == 0 ? s : 1 + next_random (state) % s;
  input.op = next_random (state) % 2 == 0 ? POD_ROOFLINE_MATMUL : POD_ROOFLINE_ATTENTION;
  return input;
}

/* lower <= time <= upper, and without losses upper <= 2 lower. */
START_TEST (test_bounds_hold)
{
  uint64_t state = 1;

  for (unsigned i = 0; i < 3000; i++)
    {
      PodRooflineInput input = random_input (&state);

      for (unsigned fidelity = 0; fidelity <= POD_FIDELITY_CALIBRATED; fidelity++)
        {
          PodRoofline result = compute ((PodFidelity) fidelity, &input);

          ck_assert_double_le (result.lower_bound_s, result.time.time_s * (1 + 1e-12));
          ck_assert_double_le (result.time.time_s, result.upper_bound_s * (1 + 1e-12));
          if (fidelity != POD_FIDELITY_CALIBRATED)
            ck_assert_double_le (result.upper_bound_s, 2 * result.lower_bound_s * (1 + 1e-12));
        }
    }
}
END_TEST

/* The size that the critical one is about, as the input has it. */
static uint64_t *
batch_of (PodRooflineInput *input)
{
  return input->op == POD_ROOFLINE_MATMUL ? &input->matmul.b : &input->attention.t;
}

/* Just below the critical batch the op is memory-bound, just above it compute-bound. */
START_TEST (test_critical_batch_is_where_the_bound_turns)
{
  uint64_t state = 2;
  unsigned n_checked = 0;

  for (unsigned i = 0; i < 3000; i++)
    {
      PodRooflineInput input = random_input (&state);
      bool is_self = input.attention.t == input.attention.s;
      double critical = compute (POD_FIDELITY_IDEAL, &input).critical_batch;
      double limit
          = input.op == POD_ROOFLINE_MATMUL || is_self ? 1e9 : (double) input.attention.s - 1;

      if (!isfinite (critical) || critical < 2 || critical > limit || critical == floor (critical))
        continue;
      for (unsigned above = 0; above < 2; above++)
        {
          PodBound expected = above ? POD_BOUND_COMPUTE : POD_BOUND_HBM;

          *batch_of (&input) = (uint64_t) floor (critical) + above;
          if (is_self)
            input.attention.s = input.attention.t;
          ck_assert_int_eq (compute (POD_FIDELITY_IDEAL, &input).time.bound, expected);
        }
      n_checked++;
    }
  ck_assert_uint_gt (n_checked, 500);
}
END_TEST

/* -- refusals ------------------------------------------------------------------------------------
 */

static void
check_refusal (const PodChip *chip, const PodRooflineInput *input, int code, const char *message)
{
  g_autoptr (GError) error = NULL;
  PodRoofline result;

  ck_assert (!pod_roofline_compute (chip, POD_FIDELITY_BOOK, input, &result, &error));
  ck_assert_int_eq (error->domain, POD_ERROR);
  ck_assert_int_eq (error->code, code);
  ck_assert_str_eq (error->message, message);
}

START_TEST (test_refusals)
{
  PodChip chip = round_chip ();
  PodRooflineInput empty = matmul_input (0, 8, 8);
  PodRooflineInput heads = attention_input (1, 8, 64, 7, false);
  PodRooflineInput mask = attention_input (9, 8, 8, 8, true);
  PodRooflineInput vmem = matmul_input (8, 8, 8);
  PodRooflineInput copy = { .op = POD_ROOFLINE_COPY };
  PodRooflineInput vector = { .op = POD_ROOFLINE_VECTOR };

  check_refusal (&chip, &empty, POD_ERROR_INVALID, "B must be 1 or more, got 0");
  check_refusal (&chip, &heads, POD_ERROR_INFEASIBLE,
                 "64 query heads do not divide over 7 KV heads: 1 are left over");
  check_refusal (&chip, &mask, POD_ERROR_INVALID,
                 "causal attention needs at least as many keys as queries, got T=9, S=8");
  check_refusal (&chip, &copy, POD_ERROR_INVALID, "a copy needs bytes");
  check_refusal (&chip, &vector, POD_ERROR_INVALID,
                 "a vector op needs elements, and FLOPs or bytes of each");
  chip.vmem_bytes_per_s = (PodRated){ 0, 0 };
  vmem.place = POD_PLACE_VMEM;
  check_refusal (&chip, &vmem, POD_ERROR_UNSUPPORTED,
                 "chip 'round' gives no bandwidth of vmem: set chip.vmem_bandwidth");
}
END_TEST

START_TEST (test_names)
{
  g_autoptr (GError) error = NULL;
  PodRooflineOp op;
  PodPlace place;

  for (unsigned i = 0; i <= POD_ROOFLINE_COPY; i++)
    {
      ck_assert (pod_roofline_op_parse (pod_roofline_op_name ((PodRooflineOp) i), &op, &error));
      ck_assert_uint_eq (op, i);
    }
  for (unsigned i = 0; i <= POD_PLACE_HOST; i++)
    {
      ck_assert (pod_place_parse (pod_place_name ((PodPlace) i), &place, &error));
      ck_assert_uint_eq (place, i);
    }
  ck_assert (!pod_roofline_op_parse ("conv", &op, &error));
  ck_assert_str_eq (error->message,
                    "unknown op 'conv': it is one of matmul, attention, vector, copy");
}
END_TEST

static Suite *
roofline_suite (void)
{
  Suite *suite = suite_create ("roofline");
  TCase *tests = tcase_create ("roofline");

  tcase_set_timeout (tests, 60);
  tcase_add_test (tests, test_matmul);
  tcase_add_test (tests, test_critical_batch);
  tcase_add_test (tests, test_no_critical_batch);
  tcase_add_test (tests, test_places);
  tcase_add_test (tests, test_self_attention);
  tcase_add_test (tests, test_decode_attention);
  tcase_add_test (tests, test_vector);
  tcase_add_test (tests, test_copy);
  tcase_add_test (tests, test_bounds_hold);
  tcase_add_test (tests, test_critical_batch_is_where_the_bound_turns);
  tcase_add_test (tests, test_refusals);
  tcase_add_test (tests, test_names);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (roofline_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
