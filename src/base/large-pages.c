#include "base/large-pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)

/* Of Linux 6.1; an older one refuses it, and a first small page is all that is lost */
#ifdef MADV_COLLAPSE
#define COLLAPSE MADV_COLLAPSE
#else
#define COLLAPSE 25
#endif

enum
{
  PAGE_BYTES = 2 << 20,       /* x86_64, and arm64 with pages of 4 KiB */
  RESERVED_BYTES = 256 << 20, /* addresses alone; what a larger heap has beyond them are small pages */
  LARGEST_BYTES = 32 << 20,   /* what malloc takes from the heap, its limit */
};

/* Addresses that nobody uses count, too. */
static bool
is_limited (void)
{
  struct rlimit space;
  struct rlimit data;

  return getrlimit (RLIMIT_AS, &space) != 0 || getrlimit (RLIMIT_DATA, &data) != 0 || space.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

/* The heap grows at once by all that is reserved, from where a page begins, so that one advice holds for all of it; what is freed stays
 * for the next run. */
void
pod_large_pages_begin (void)
{
  const uintptr_t start = (uintptr_t) sbrk (0);
  const uintptr_t unaligned = start % PAGE_BYTES;
  uintptr_t first;
  uintptr_t end;
  void *volatile grown; /* more than is left of what the libraries' constructors took; a pair that is not used is optimised away */

  if (is_limited ())
    return;
  if (start == UINTPTR_MAX || (unaligned > 0 && sbrk ((intptr_t) (PAGE_BYTES - unaligned)) == (void *) -1))
    return;
  first = (uintptr_t) sbrk (0);
  if (mallopt (M_TOP_PAD, RESERVED_BYTES) != 1 || mallopt (M_MMAP_THRESHOLD, LARGEST_BYTES) != 1 || mallopt (M_TRIM_THRESHOLD, INT32_MAX) != 1)
    return;
  grown = malloc (PAGE_BYTES);
  free (grown);
  end = (uintptr_t) sbrk (0);
  if (end > first && end - first <= 2 * (uintptr_t) RESERVED_BYTES)
    {
      (void) madvise ((void *) first, end - first, MADV_HUGEPAGE);
      (void) madvise ((void *) first, PAGE_BYTES, COLLAPSE); /* malloc has written to it */
    }
}

#else

void
pod_large_pages_begin (void)
{
}

#endif
