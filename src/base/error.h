#pragma once

#include <glib.h>

/* The one error domain. What a code means to the caller, and the exit status that cli/ gives it:
 *   POD_ERROR_IO           the program could not write (disk full, no permission)      exit 1
 *   POD_ERROR_PARSE        unreadable or malformed input; message starts "file:line: "  exit 2
 *   POD_ERROR_INVALID      well-formed input that says something wrong                  exit 2
 *   POD_ERROR_UNSUPPORTED  legal, but nothing here can model it                         exit 2
 *   POD_ERROR_INFEASIBLE   valid, but it cannot be: does not divide, deadlock           exit 3
 *   POD_ERROR_LIMIT        a named limit was passed                                     exit 3
 *   POD_ERROR_MEMORY       more than a device's memory holds                            exit 3
 */
typedef enum
{
  POD_ERROR_IO,
  POD_ERROR_PARSE,
  POD_ERROR_INVALID,
  POD_ERROR_UNSUPPORTED,
  POD_ERROR_INFEASIBLE,
  POD_ERROR_LIMIT,
  POD_ERROR_MEMORY,
} PodErrorCode;

#define POD_ERROR (pod_error_quark ())
GQuark pod_error_quark (void);

/* Puts "@option: " ("--topology") before the message, unless that begins with the name of a file that
 * is there: then "file:line: " says better where it is. @error: (inout) (nullable) */
void pod_error_prefix_option (GError **error, const char *option);
