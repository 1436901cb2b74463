#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/units.h"

void
pod_progress_init (PodProgress *progress)
{
  *progress = (PodProgress){ .is_terminal = isatty (STDERR_FILENO) == 1, .begin_us = g_get_monotonic_time () };
}

void
pod_progress_show (PodProgress *progress, const char *what, uint64_t n_done, uint64_t n_all, const char *best)
{
  const int64_t now_us = g_get_monotonic_time ();
  const double elapsed_s = (double) (now_us - progress->begin_us) / 1e6;
  const double rate = (double) n_done / elapsed_s;
  g_autofree char *left = NULL;

  if (!progress->is_terminal || elapsed_s < 1 || now_us - progress->last_us < 200000)
    return;
  progress->last_us = now_us;
  progress->is_shown = true;
  left = pod_format_seconds (rate > 0 ? (double) (n_all - n_done) / rate : 0);
  fprintf (stderr, "\r\033[K%s %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT ", %.3g/s, %s left%s%s", what, n_done, n_all, rate, left, best != NULL ? ", best " : "",
           best != NULL ? best : "");
  fflush (stderr);
}

void
pod_progress_end (PodProgress *progress)
{
  if (progress->is_shown)
    fputs ("\r\033[K", stderr);
  progress->is_shown = false;
}
