#pragma once

/* Once, before the first allocation of the main thread: lets the heap stand on pages of 2 MiB, where the system gives them on request.
 * A machine of 100,000 chips fills 100 MB, and the kernel takes as long to hand these over in pages of 4 KiB as we do to fill them.
 * Does nothing where malloc is not glibc's. */
void pod_large_pages_begin (void);
