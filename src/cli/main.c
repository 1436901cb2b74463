#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/large-pages.h"
#include "cli/cli.h"

const PodCommand pod_commands[] = {
  { "run", "one training step: time, breakdown, memory, timeline", pod_cmd_run },
  { "compare", "the same job on several machines or slice shapes", pod_cmd_compare },
  { "search", "the best layouts of a model on a machine", pod_cmd_search },
  { "sweep", "a grid of runs: values of options against each other", pod_cmd_sweep },
  { "results", "the runs that a database of a search or sweep holds", pod_cmd_results },
  { "diff", "what changed between two results, and which terms explain it", pod_cmd_diff },
  { "collective", "one collective, as nccl-tests prints it", pod_cmd_collective },
  { "matmul", "a sharded matmul: its case, the ways to do it, the best", pod_cmd_matmul },
  { "roofline", "one operation on one device: time, bound, intensity", pod_cmd_roofline },
  { "model", "a model's parameters, FLOPs and cache", pod_cmd_model },
  { "topology", "what a machine is", pod_cmd_topology },
  { "validate", "predictions against published measurements", pod_cmd_validate },
  { "calibrate", "fit cost tables to measurements", pod_cmd_calibrate },
  { NULL, NULL, NULL },
};

static void
print_usage (void)
{
  printf ("Usage: podsim COMMAND [OPTIONS]\n\nSimulates training and serving Transformers on TPU and GPU clusters.\n\nCommands:\n");
  for (const PodCommand *command = pod_commands; command->name != NULL; command++)
    printf ("  %-12s %s\n", command->name, command->summary);
  printf ("\n  podsim COMMAND --help   its options\n  podsim help COMMAND     the same\n  podsim --version\n");
}

static const PodCommand *
find_command (const char *name)
{
  for (const PodCommand *command = pod_commands; command->name != NULL; command++)
    if (strcmp (command->name, name) == 0)
      return command;
  return NULL;
}

static int
unknown_command (const char *name)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const char *near;

  for (const PodCommand *command = pod_commands; command->name != NULL; command++)
    g_ptr_array_add (names, (char *) command->name);
  near = pod_data_nearest (names, name);
  return pod_cli_refuse ("unknown command '%s'%s%s%s; podsim --help lists them", name, near != NULL ? ", did you mean '" : "",
                         near != NULL ? near : "", near != NULL ? "'" : "");
}

/* A standard stream that is closed would give its number to the next file that is opened, which would then hold what is
 * printed. Opened the wrong way round, it still fails as a closed one does. */
static bool
fill_standard_streams (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0 && errno == EBADF && open ("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return false;
  return true;
}

static int
run_command (int argc, char **argv)
{
  const PodCommand *command;

  if (argc < 2)
    return pod_cli_refuse ("a command is missing; podsim --help lists them");
  if (strcmp (argv[1], "--version") == 0)
    {
      printf ("podsim %s\n", POD_VERSION);
      return 0;
    }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0 || (strcmp (argv[1], "help") == 0 && argc == 2))
    {
      print_usage ();
      return 0;
    }
  if (strcmp (argv[1], "help") == 0)
    {
      char *help[] = { argv[2], (char *) "--help", NULL };

      command = find_command (argv[2]);
      return command != NULL ? command->run (2, help) : unknown_command (argv[2]);
    }
  command = find_command (argv[1]);
  return command != NULL ? command->run (argc - 1, argv + 1) : unknown_command (argv[1]);
}

int
main (int argc, char **argv)
{
  int status;

  pod_large_pages_begin ();
  signal (SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, reported as one */
  if (!fill_standard_streams ())
    return 1;
  status = run_command (argc, argv);
  if (status == 1 || status == 2) /* one line has been said */
    return status;
  if (fflush (stdout) != 0)
    pod_cli_refuse ("standard output: cannot write: %s", g_strerror (errno));
  else if (ferror (stdout))
    pod_cli_refuse ("standard output: cannot write all");
  else
    return status;
  return 1;
}
