#pragma once

#include <signal.h>

/* SIGINT asks a long run to stop where it is, so that what it has can be written; another, more than a second later, ends the program. */

/* From now on SIGINT sets what this returns. */
const volatile sig_atomic_t *pod_cli_catch_interrupt (void);
/* SIGINT ends the program again, or, if one came, another does. */
void pod_cli_release_interrupt (void);
