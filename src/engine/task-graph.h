#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Programs of tasks on streams. Knows no hardware: a task takes a known time or is *joint* (its owner says when it ends).
 *
 * A *class* is a program that many ranks run. It is a list of *steps*; each step runs a *block* (a template: tasks by
 * stream) for one microbatch, so a program of 32,768 microbatches costs no more than its few blocks and a step list.
 * Streams are in-order, as CUDA streams are. A dependency names a stream and how many of its tasks must have ended,
 * counted from the step's own start on that stream: count 3 = the first three tasks of this step's block, 0 = all earlier
 * steps, -1 = all earlier ones but the last. So waiting needs no lists: a comparison with the stream's counter. */

#define POD_MAX_STREAMS 20
#define POD_JOINT (-1)
#define POD_NO_LANE UINT8_MAX

typedef struct
{
  uint8_t stream;
  int32_t count;
} PodTaskDep;

typedef struct
{
  int64_t duration_ps; /* >= 0, or POD_JOINT */
  uint32_t op;         /* the owner's */
  uint32_t like;       /* the owner's first op that is all that this one is */
  uint32_t first_dep;
  uint16_t n_deps;
  bool is_outward;     /* the owner's: it meets ranks of another island (exec/islands.c) */
} PodTask;

typedef struct
{
  uint32_t first_task[POD_MAX_STREAMS];
  uint32_t n_tasks[POD_MAX_STREAMS];
  uint32_t like;  /* the first block whose tasks are like those of this one, one by one */
  uint32_t kin;   /* the first block whose tasks are like those of this one but for whom outward tasks meet */
  uint32_t place; /* the owner's: which of its layers it is of a block that was divided into these */
  uint32_t first_outward; /* made by pod_task_graph_list_outward */
  uint32_t n_outward;
} PodBlock;

/* Tasks of a block on @lane wait for outward ones of @on, @count of them as a dependency counts. */
typedef struct
{
  uint8_t lane;
  uint8_t on;
  int32_t count;
} PodOutwardDep;

typedef struct
{
  uint32_t block;
  int32_t microbatch; /* -1 none */
} PodStep;

typedef struct
{
  uint32_t n_steps;
  const PodStep *steps;
  /* Made by pod_task_graph_seal */
  uint32_t *base; /* (n_steps + 1) x n_lanes: tasks of earlier steps */
  uint32_t *like; /* n_steps: the first block that each one's is like */
} PodClassProgram;

typedef struct
{
  unsigned n_streams;
  /* Made by pod_task_graph_seal: streams that something runs on or waits for get lanes, in their order; from then on blocks, dependencies
   * and bases are by lane, so that what a rank keeps is only of these. */
  unsigned n_lanes;
  uint8_t lane_of_stream[POD_MAX_STREAMS]; /* POD_NO_LANE none */
  uint8_t stream_of_lane[POD_MAX_STREAMS];
  GArray *tasks;   /* PodTask */
  GArray *deps;    /* PodTaskDep */
  GArray *outward; /* (nullable) PodOutwardDep */
  GArray *blocks;  /* PodBlock */
  GArray *classes; /* PodClassProgram */
  GPtrArray *steps; /* GArray of PodStep: those that are the graph's own */
} PodTaskGraph;

PodTaskGraph *pod_task_graph_new (unsigned n_streams);
void pod_task_graph_free (PodTaskGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTaskGraph, pod_task_graph_free)
/* Gives streams their lanes and counts the tasks before each step, once all is in. To be called once. O(tasks + steps x streams). */
void pod_task_graph_seal (PodTaskGraph *graph);
/* Lists what waits for outward tasks, once it is said which these are. O(tasks + dependencies x tasks of a block on one lane). */
void pod_task_graph_list_outward (PodTaskGraph *graph);
