#pragma once

#include "chip/kernel.h"

/* The roofline of one operation on one device: what limits it, and from which batch on it is
 * compute-bound. */

typedef enum
{
  POD_ROOFLINE_MATMUL,
  POD_ROOFLINE_ATTENTION, /* forward */
  POD_ROOFLINE_VECTOR,    /* element-wise */
  POD_ROOFLINE_COPY,      /* bytes only */
} PodRooflineOp;

/* Where the operands live and the results go. */
typedef enum
{
  POD_PLACE_HBM,
  POD_PLACE_VMEM, /* TPU VMEM, GPU shared memory */
  POD_PLACE_HOST, /* over PCIe or C2C, one direction after the other */
} PodPlace;

typedef struct
{
  PodRooflineOp op;
  PodPlace place;
  PodDtype dtype;         /* activations; attention: all operands */
  PodDtype weight_dtype;  /* matmul */
  PodDtype out_dtype;     /* matmul */
  PodDtype compute_dtype; /* of the multiplications */
  struct
  {
    uint64_t groups; /* independent matmuls, each with its own weights */
    uint64_t b;      /* X[B,D] . Y[D,F] -> Z[B,F] */
    uint64_t d;
    uint64_t f;
  } matmul;
  struct
  {
    uint64_t b;     /* sequences */
    uint64_t t;     /* queries of each */
    uint64_t s;     /* keys of each */
    uint64_t n;     /* query heads */
    uint64_t k;     /* KV heads */
    uint64_t h;     /* head_dim */
    bool is_causal; /* the last query sees all keys */
  } attention;
  struct
  {
    double elements;
    double flops;       /* per element */
    double read_bytes;  /* per element */
    double write_bytes; /* per element */
  } vector;
  struct
  {
    double read_bytes;
    double write_bytes;
  } copy;
} PodRooflineInput;

typedef struct
{
  PodKernel kernel;
  PodKernelTime time;
  double intensity_flops_per_byte; /* of this op, exact bytes; 0 for a copy */
  double ridge_flops_per_byte; /* C/W: above it an op is compute-bound. W is the rate of the place,
                                  C that of the matrix units, for vector ops that of the vector
                                  units (0 where that is unknown) */
  double critical_batch; /* smallest B (attention: queries per sequence) that is compute-bound with
                            the exact bytes, real-valued; INFINITY: none is; vector and copy: NAN,
                            they have no batch */
  double critical_batch_rule; /* the same by the rule of thumb that counts only the larger operand:
                                 matmul C/W x weight bytes/2, attention by KV heads (see the .c
                                 file) */
  double attained_flops_per_s;
  double lower_bound_s;      /* all overlaps, nothing is lost: max(FLOPs/C, bytes/W) */
  double upper_bound_s;      /* nothing overlaps */
  double memory_bytes_per_s; /* W */
  PodDtype used_dtype; /* of the peak: differs from compute_dtype where the chip has none of that */
} PodRoofline;

/* Fills *out. Under book the numbers are the book's, and vector ops take their time, other than in
 * pod_kernel_time(), since they are asked for by name. Errors: INVALID for a size of 0 and heads
 * that do not divide; UNSUPPORTED where the chip file gives no rate for the place. Pure; O(1). */
bool pod_roofline_compute (const PodChip *chip, PodFidelity fidelity, const PodRooflineInput *input,
                           PodRoofline *out, GError **error);

const char *pod_roofline_op_name (PodRooflineOp op); /* "matmul" */
bool pod_roofline_op_parse (const char *text, PodRooflineOp *out, GError **error);
const char *pod_place_name (PodPlace place); /* "hbm" */
bool pod_place_parse (const char *text, PodPlace *out, GError **error);
