#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One line on a terminal's stderr that is written over and over, from the second second on; nothing anywhere else. */
typedef struct
{
  bool is_terminal;
  bool is_shown;
  int64_t begin_us;
  int64_t last_us;
} PodProgress;

void pod_progress_init (PodProgress *progress);
/* "@what N of M, rate, time left, @best". @best: (nullable) */
void pod_progress_show (PodProgress *progress, const char *what, uint64_t n_done, uint64_t n_all, const char *best);
/* Wipes the line away. */
void pod_progress_end (PodProgress *progress);
