/* Threads that share one kernel's work. Everybody begins with the same part of it every time, whose words are in its core's
cache still, and then helps the others; a helper that comes late, or not at all, holds nobody up. One caller at a time has
the helpers; another does its work alone. */

#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST_HELPERS = 63, TURNS = 2000 /* looks for work, some 100 us, before a helper lies down to sleep */ };

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER; /* whoever has the helpers */
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER; /* where they sleep */
static pthread_cond_t knock = PTHREAD_COND_INITIALIZER;
static int helpers, started;
static atomic_int asleep;

/* One piece of work. What is not atomic is written while `open` is 0 and nobody is `inside`. */
static atomic_uint open; /* its number, or 0: there is none */
static atomic_int inside;
static work_part *work;
static const void *context;
static int shares;
static struct {
    _Alignas(64) atomic_llong next;
    long long end;
} share[MOST_HELPERS + 1];

static inline void breathe(void) {
#if DPMPC_X86
    __builtin_ia32_pause();
#endif
}

static void do_parts(int me) {
    for (int k = 0; k < shares; k++) {
        int of = (me + k) % shares;
        for (long long i; (i = atomic_fetch_add(&share[of].next, 1)) < share[of].end;) work(context, i, i + 1);
    }
}

static unsigned wait_for_work(unsigned done) {
    unsigned now = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        now = atomic_load(&open);
        if (now && now != done) return now;
        breathe();
    }
    pthread_mutex_lock(&door);
    atomic_fetch_add(&asleep, 1);
    while (now = atomic_load(&open), !now || now == done) pthread_cond_wait(&knock, &door);
    atomic_fetch_sub(&asleep, 1);
    pthread_mutex_unlock(&door);
    return now;
}

static void *help(void *number) {
    int me = (int)(intptr_t)number;
    for (unsigned done = 0;;) {
        done = wait_for_work(done);
        atomic_fetch_add(&inside, 1);
        if (atomic_load(&open) == done && me < shares) do_parts(me);
        atomic_fetch_sub(&inside, 1);
    }
    return NULL;
}

void share_out(Py_ssize_t count, work_part *part, const void *of) {
    static unsigned number;
    int here = (int)(count < helpers + 1 ? count : helpers + 1);
    if (here < 2 || pthread_mutex_trylock(&busy)) {
        part(of, 0, count);
        return;
    }
    work = part, context = of, shares = here;
    for (int k = 0; k < here; k++) {
        atomic_store(&share[k].next, count * k / here);
        share[k].end = count * (k + 1) / here;
    }
    if (!++number) number++;
    atomic_store(&open, number);
    if (atomic_load(&asleep)) {
        pthread_mutex_lock(&door);
        pthread_cond_broadcast(&knock);
        pthread_mutex_unlock(&door);
    }
    do_parts(0);
    atomic_store(&open, 0);
    while (atomic_load(&inside)) breathe();
    pthread_mutex_unlock(&busy);
}

/* A child of fork has no threads but its own. */
static void forget(void) {
    pthread_mutex_init(&busy, NULL);
    pthread_mutex_init(&door, NULL);
    pthread_cond_init(&knock, NULL);
    helpers = started = 0;
    atomic_store(&asleep, 0);
    atomic_store(&inside, 0);
    atomic_store(&open, 0);
}

static PyObject *use_threads(PyObject *self, PyObject *args) {
    static int watched;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &threads)) return NULL;
    if (threads < 1) return PyErr_Format(PyExc_ValueError, "kernels run on at least 1 thread; got %d", threads);
    if (!watched) watched = !pthread_atfork(NULL, NULL, forget);
    int wanted = threads - 1 < MOST_HELPERS ? threads - 1 : MOST_HELPERS;
    pthread_mutex_lock(&busy);
    while (started < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, (void *)(intptr_t)(started + 1))) break; /* with fewer it works, too */
        pthread_detach(thread);
        started++;
    }
    helpers = wanted < started ? wanted : started;
    pthread_mutex_unlock(&busy);
    return PyLong_FromLong(helpers + 1);
}

static PyObject *threads(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyLong_FromLong(helpers + 1);
}

static PyMethodDef METHODS[] = {
    {"use_threads", use_threads, METH_VARARGS, "use_threads(threads): kernels that can be shared out run on so many; how many there are."},
    {"threads", threads, METH_NOARGS, "threads(): on how many they run."},
    {NULL, NULL, 0, NULL},
};

int add_crew(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
