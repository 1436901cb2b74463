#pragma once

#include "collective/collective.h"

/* For tests of plans. Loads are bytes per payload byte. */

/* A machine, a group on it, and the bytes that a plan puts on each link. */
typedef struct
{
  PodTopology *topology;
  PodGroup group;
  uint32_t *devices;
  PodPlan *plan;
  double *bytes; /* n_links */
} PlanCase;

/* Loads a machine by its shape expression. */
void plan_case_start (PlanCase *c, const char *machine);
void plan_case_clear (PlanCase *c);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PlanCase, plan_case_clear)
/* All devices of the product of the factors, first factor fastest, from device 0. */
void plan_case_take_factors (PlanCase *c, unsigned n_factors, const PodGroupFactor *factors);
/* @devices NULL: 0 ... n-1. */
void plan_case_take_list (PlanCase *c, uint32_t n, const uint32_t *devices);
/* Plans at ideal fidelity, for 1 GB, and checks the form of the entries. */
void plan_case_plan (PlanCase *c, PodCollectiveKind kind, const char *algorithm);
double plan_case_ici_bytes (const PlanCase *c, uint32_t device, unsigned dim, int sign);
/* So many links, each with that load. */
void plan_case_assert_all (const PlanCase *c, uint32_t n_entries, double expected);
/* What arrives at each member is at least what the collective needs. */
void plan_case_assert_conserved (const PlanCase *c, double need);

/* Shares are rounded to 2^-32 of the busiest. */
#define assert_near(got, expected) ck_assert_double_eq_tol ((got), (expected), 1e-8)
