#include "cli/interrupt.h"

#include <stddef.h>

static volatile sig_atomic_t is_interrupted;

static void
on_interrupt (int signal_number)
{
  (void) signal_number;
  is_interrupted = 1;
}

/* Who started the program may have it ignore the signal, as shells do with jobs in the background. */
static void
set_handler (void (*handler) (int))
{
  struct sigaction action = { .sa_handler = handler, .sa_flags = (int) SA_RESETHAND };
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
  set_handler (SIG_DFL);
}
