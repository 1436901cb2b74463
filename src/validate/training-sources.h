#pragma once

#include "validate/training-table.h"

/* What the words of the measured tables mean to us: machines, models, frameworks, FLOP conventions. Each in one table; what
 * stands there is stated by the source or the framework's own documentation, nothing is fitted. */

/* A machine, recognised by parts of the table's words. */
typedef struct
{
  const char *hardware;  /* part of the column */
  const char *topology;  /* (nullable) part of the column */
  const char *chip;      /* (nullable) NULL: known, but nothing here models it */
  uint32_t domain;       /* chips of a scale-up domain; 0: a torus */
  const char *options;   /* (nullable) of the shape expression */
  const char *set[3];    /* (nullable elements) --set of the chip */
} PodTrainingMachine;

/* A model by the beginning of its name; its widths come from the row. */
typedef struct
{
  const char *model;
  const char *file;      /* in workloads/models */
  bool is_whole;         /* taken as it is: experts and latent attention have more widths than the row */
} PodTrainingModel;

/* How a framework runs a step, unless the row says otherwise. */
typedef struct
{
  const char *framework;      /* beginning of the column */
  uint64_t before_year;       /* only rows of earlier years; 0: of any */
  bool is_sequence_parallel;  /* tp shards tokens between its matmuls */
  bool is_tp_overlapped;
  bool is_dp_overlapped;
  bool splits_by_pp;          /* micro_batch is a rank's whole batch, cut into as many microbatches as stages */
  const char *selective;      /* (nullable) what its selective recomputation is here, if not that */
  uint64_t fused_loss_year;   /* from when on its loss is one kernel; 0: as its options say */
  const char *options[6];     /* (nullable elements) "NAME=VALUE": options of a run */
} PodTrainingFramework;

/* What the source's MFU or TFLOP/s count. */
typedef struct
{
  const char *convention; /* beginning of the column */
  const char *ours;       /* --flops-convention */
  bool has_recompute;     /* with what is computed again */
} PodTrainingConvention;

/* Groups of rows: the sources, as the table's source_key names them. */
typedef struct
{
  const char *key;
  const char *title;
  bool is_memory_measured; /* false: the source computed its memory figures */
  const char *group;       /* (nullable) rows that are judged together */
} PodTrainingSource;

/* Why some rows are far off, as far as that is known. All parts (nullable): any. */
typedef struct
{
  const char *source;    /* beginning of the key */
  const char *model;     /* beginning of the column */
  const char *framework; /* beginning of the column */
  const char *cause;
} PodTrainingCause;

extern const PodTrainingSource pod_training_sources[]; /* ends with key NULL */

/* (transfer none) (nullable): NULL where the words are not in the table. */
const PodTrainingMachine *pod_training_machine (const PodTrainingRow *row);
const char *pod_training_cause (const PodTrainingRow *row);
const PodTrainingModel *pod_training_model (const PodTrainingRow *row);
const PodTrainingConvention *pod_training_convention (const PodTrainingRow *row);
const PodTrainingSource *pod_training_source (const PodTrainingRow *row);
/* The last entry, of no name, stands for all others. (transfer none) */
const PodTrainingFramework *pod_training_framework (const PodTrainingRow *row);
