#include "cli/interrupt.h"

#include <stddef.h>
#include <time.h>

/* Whoever passes a signal on may deliver it twice: timeout(1) and MPI's launchers send it to the process and to its group. What comes this
   soon after the first, in seconds, is the same request; later, it is somebody who will not wait. */
#define SAME_REQUEST_S 1

static volatile sig_atomic_t is_interrupted;
static time_t interrupted_s; /* written and read by the handler alone, which does not interrupt itself */

static time_t
now_s (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void
on_interrupt (int signal_number)
{
  if (!is_interrupted)
    {
      interrupted_s = now_s ();
      is_interrupted = 1;
    }
  else if (now_s () > interrupted_s + SAME_REQUEST_S)
    {
      signal (signal_number, SIG_DFL);
      raise (signal_number);
    }
}

/* Who started the program may have it ignore the signal, as shells do with jobs in the background. */
static void
set_handler (void (*handler) (int))
{
  struct sigaction action = { .sa_handler = handler };
  struct sigaction before;

  if (sigaction (SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
    sigaction (SIGINT, &action, NULL);
}

const volatile sig_atomic_t *
pod_cli_catch_interrupt (void)
{
  set_handler (on_interrupt);
  return &is_interrupted;
}

void
pod_cli_release_interrupt (void)
{
  if (!is_interrupted)
    set_handler (SIG_DFL);
}
