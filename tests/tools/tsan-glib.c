/* Linked into every program of a SANITIZE=thread build. Debian's GLib is not instrumented, and its
 * locks and queues call futex(2) themselves, so ThreadSanitizer sees no order between the threads
 * that use them and reports races where there are none. The linker (--wrap) sends our calls through
 * here, where that order is told to it: what happened before an unlock happened before the next
 * lock, and so on. */

#include <glib.h>
#include <sanitizer/tsan_interface.h>

void __real_g_mutex_lock (GMutex *mutex);
void __wrap_g_mutex_lock (GMutex *mutex);
void __real_g_mutex_unlock (GMutex *mutex);
void __wrap_g_mutex_unlock (GMutex *mutex);
gboolean __real_g_mutex_trylock (GMutex *mutex);
gboolean __wrap_g_mutex_trylock (GMutex *mutex);
void __real_g_cond_wait (GCond *cond, GMutex *mutex);
void __wrap_g_cond_wait (GCond *cond, GMutex *mutex);
gboolean __real_g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end_time);
gboolean __wrap_g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end_time);
gboolean __real_g_once_init_enter (void *location);
gboolean __wrap_g_once_init_enter (void *location);
void __real_g_once_init_leave (void *location, gsize result);
void __wrap_g_once_init_leave (void *location, gsize result);
void __real_g_async_queue_push (GAsyncQueue *queue, gpointer data);
void __wrap_g_async_queue_push (GAsyncQueue *queue, gpointer data);
gpointer __real_g_async_queue_pop (GAsyncQueue *queue);
gpointer __wrap_g_async_queue_pop (GAsyncQueue *queue);
gpointer __real_g_async_queue_try_pop (GAsyncQueue *queue);
gpointer __wrap_g_async_queue_try_pop (GAsyncQueue *queue);
void __real_g_async_queue_push_front (GAsyncQueue *queue, gpointer data);
void __wrap_g_async_queue_push_front (GAsyncQueue *queue, gpointer data);
gpointer __real_g_async_queue_timeout_pop (GAsyncQueue *queue, guint64 timeout);
gpointer __wrap_g_async_queue_timeout_pop (GAsyncQueue *queue, guint64 timeout);
GThreadPool *__real_g_thread_pool_new (GFunc func, gpointer user_data, gint max_threads,
                                       gboolean exclusive, GError **error);
GThreadPool *__wrap_g_thread_pool_new (GFunc func, gpointer user_data, gint max_threads,
                                       gboolean exclusive, GError **error);
gboolean __real_g_thread_pool_push (GThreadPool *pool, gpointer data, GError **error);
gboolean __wrap_g_thread_pool_push (GThreadPool *pool, gpointer data, GError **error);
void __real_g_thread_pool_free (GThreadPool *pool, gboolean immediate, gboolean wait_);
void __wrap_g_thread_pool_free (GThreadPool *pool, gboolean immediate, gboolean wait_);

void
__wrap_g_mutex_lock (GMutex *mutex)
{
  __real_g_mutex_lock (mutex);
  __tsan_acquire (mutex);
}

void
__wrap_g_mutex_unlock (GMutex *mutex)
{
  __tsan_release (mutex);
  __real_g_mutex_unlock (mutex);
}

gboolean
__wrap_g_mutex_trylock (GMutex *mutex)
{
  gboolean is_mine = __real_g_mutex_trylock (mutex);

  if (is_mine)
    __tsan_acquire (mutex);
  return is_mine;
}

void
__wrap_g_cond_wait (GCond *cond, GMutex *mutex)
{
  __tsan_release (mutex);
  __real_g_cond_wait (cond, mutex);
  __tsan_acquire (mutex);
}

gboolean
__wrap_g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end_time)
{
  gboolean is_signalled;

  __tsan_release (mutex);
  is_signalled = __real_g_cond_wait_until (cond, mutex, end_time);
  __tsan_acquire (mutex);
  return is_signalled;
}

gboolean
__wrap_g_once_init_enter (void *location)
{
  gboolean is_first = __real_g_once_init_enter (location);

  __tsan_acquire (location);
  return is_first;
}

void
__wrap_g_once_init_leave (void *location, gsize result)
{
  __tsan_release (location);
  __real_g_once_init_leave (location, result);
}

void
__wrap_g_async_queue_push (GAsyncQueue *queue, gpointer data)
{
  __tsan_release (queue);
  __real_g_async_queue_push (queue, data);
}

gpointer
__wrap_g_async_queue_pop (GAsyncQueue *queue)
{
  gpointer data = __real_g_async_queue_pop (queue);

  __tsan_acquire (queue);
  return data;
}

gpointer
__wrap_g_async_queue_try_pop (GAsyncQueue *queue)
{
  gpointer data = __real_g_async_queue_try_pop (queue);

  __tsan_acquire (queue);
  return data;
}

void
__wrap_g_async_queue_push_front (GAsyncQueue *queue, gpointer data)
{
  __tsan_release (queue);
  __real_g_async_queue_push_front (queue, data);
}

gpointer
__wrap_g_async_queue_timeout_pop (GAsyncQueue *queue, guint64 timeout)
{
  gpointer data = __real_g_async_queue_timeout_pop (queue, timeout);

  if (data != NULL)
    __tsan_acquire (queue);
  return data;
}

/* A pool's function and argument, kept by the pool in place of the argument */
typedef struct
{
  GFunc func;
  gpointer user_data;
} PoolTask;

static void
run_task (gpointer data, gpointer user_data)
{
  PoolTask *task = user_data;

  __tsan_acquire (task);
  task->func (data, task->user_data);
  __tsan_release (task);
}

/* Not checked: the last worker frees the pool inside GLib, ordered by a lock that is not seen. */
__attribute__ ((no_sanitize ("thread"), noinline)) static PoolTask *
task_of (const GThreadPool *pool)
{
  return *(gpointer volatile const *) &pool->user_data; /* so that the read stays in this function */
}

GThreadPool *
__wrap_g_thread_pool_new (GFunc func, gpointer user_data, gint max_threads, gboolean exclusive,
                          GError **error)
{
  PoolTask *task = g_new (PoolTask, 1);

  task->func = func;
  task->user_data = user_data;
  return __real_g_thread_pool_new (run_task, task, max_threads, exclusive, error);
}

/* The acquire of a task sees the release of every push so far: coarser than the truth by the pushes
 * that another worker took, which hides no race between two tasks. */
gboolean
__wrap_g_thread_pool_push (GThreadPool *pool, gpointer data, GError **error)
{
  __tsan_release (task_of (pool));
  return __real_g_thread_pool_push (pool, data, error);
}

void
__wrap_g_thread_pool_free (GThreadPool *pool, gboolean immediate, gboolean wait_)
{
  PoolTask *task = task_of (pool);

  __real_g_thread_pool_free (pool, immediate, wait_);
  /* Without waiting, tasks may still run: then the few bytes stay */
  if (!wait_)
    return;
  __tsan_acquire (task);
  g_free (task);
}
