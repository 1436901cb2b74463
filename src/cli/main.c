#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "cli/cli.h"

const PodCommand pod_commands[] = {
  { "run", "one training step: time, breakdown, memory, timeline", pod_cmd_run },
  { "diff", "what changed between two results, and which terms explain it", pod_cmd_diff },
  { "collective", "one collective, as nccl-tests prints it", pod_cmd_collective },
  { "roofline", "one operation on one device: time, bound, intensity", pod_cmd_roofline },
  { "model", "a model's parameters, FLOPs and cache", pod_cmd_model },
  { "topology", "what a machine is", pod_cmd_topology },
  { NULL, NULL, NULL },
};

static void
print_usage (FILE *to)
{
  fprintf (to, "Usage: podsim COMMAND [OPTIONS]\n\nSimulates training and serving Transformers on TPU and GPU clusters.\n\nCommands:\n");
  for (const PodCommand *command = pod_commands; command->name != NULL; command++)
    fprintf (to, "  %-12s %s\n", command->name, command->summary);
  fprintf (to, "\n  podsim COMMAND --help   its options\n  podsim help COMMAND     the same\n  podsim --version\n");
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
  fprintf (stderr, "podsim: unknown command '%s'%s%s%s; podsim --help lists them\n", name, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
           near != NULL ? "'" : "");
  return 2;
}

int
main (int argc, char **argv)
{
  const PodCommand *command;
  int status;

  signal (SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, reported as one */
  if (argc < 2)
    {
      print_usage (stderr);
      return 2;
    }
  if (strcmp (argv[1], "--version") == 0)
    {
      printf ("podsim %s\n", POD_VERSION);
      return 0;
    }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0 || (strcmp (argv[1], "help") == 0 && argc == 2))
    {
      print_usage (stdout);
      return 0;
    }
  if (strcmp (argv[1], "help") == 0)
    {
      char *help[] = { argv[2], "--help", NULL };

      command = find_command (argv[2]);
      return command != NULL ? command->run (2, help) : unknown_command (argv[2]);
    }
  command = find_command (argv[1]);
  if (command == NULL)
    return unknown_command (argv[1]);
  status = command->run (argc - 1, argv + 1);
  if (fflush (stdout) != 0 || ferror (stdout))
    {
      fprintf (stderr, "podsim: cannot write to standard output\n");
      return 1;
    }
  return status;
}
