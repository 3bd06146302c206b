/* Loaded before the C library (LD_PRELOAD): counts the system's calls of each kind on files below a folder, and on
 * sockets, processes and memory, over all processes of a command; has drawn ones of them fail. What to do is on a board,
 * a file that SYSTEM_FAULTS names and all those processes share; without one every call is the system's own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the order of `KINDS` in system_faults.py. */
enum { OPEN, CREATE, READ, WRITE, SYNC, LOCK, RENAME, MAKE, REMOVE, STAT, LIST, CHMOD, SOCKET, BIND, LISTEN, CONNECT,
       RESOLVE, FORK, THREAD, MEMORY, ALL, KINDS };

struct board {
    atomic_uint calls[KINDS];
    atomic_uint failed;
    int32_t kind, error; /* kind: -1 for none; error 0 of WRITE: a part is written */
    uint32_t from, once; /* the call that fails, counted from 1; and those after it, unless once */
    char under[4096];
};

static struct board *board;
static const size_t large = 1 << 16; /* bytes: memory that a library asks for, and no small object */

void system_faults_look(void)
{
    const char *name = getenv("SYSTEM_FAULTS");
    int file = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *at = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (at != MAP_FAILED)
        board = at;
}

__attribute__((constructor)) static void begin(void) { system_faults_look(); }

static int fails(int kind)
{
    unsigned n = atomic_fetch_add(&board->calls[kind], 1) + 1;
    if (kind != board->kind || n < board->from || (board->once && n != board->from))
        return 0;
    atomic_fetch_add(&board->failed, 1);
    errno = board->error;
    return 1;
}

static int below(const char *path)
{
    size_t length = strlen(board->under);
    return !strncmp(path, board->under, length) && (path[length] == '/' || !path[length]);
}

static int named(int folder, const char *path)
{
    char within[PATH_MAX] = "", whole[2 * PATH_MAX], link[64];
    int kept = errno, found;
    if (!board || !path)
        return 0;
    if (path[0] == '/')
        return below(path);
    if (folder == AT_FDCWD) {
        if (!getcwd(within, sizeof within))
            within[0] = 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t n = readlink(link, within, sizeof within - 1);
        within[n < 0 ? 0 : n] = 0;
    }
    snprintf(whole, sizeof whole, path[0] ? "%s/%s" : "%s", within, path);
    found = below(whole);
    errno = kept;
    return found;
}

static int held(int file) { return board && named(file, ""); }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* -- files -------------------------------------------------------------------------------------------------------- */
static int opened(int folder, const char *path, int flags, mode_t mode)
{
    if (named(folder, path) && fails((flags & O_ACCMODE) == O_RDONLY ? OPEN : CREATE))
        return -1;
    return syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(flags, mode) do { if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); \
    mode = va_arg(more, mode_t); va_end(more); } } while (0)

int open(const char *path, int flags, ...) { mode_t mode = 0; MODE(flags, mode); return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { mode_t mode = 0; MODE(flags, mode); return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { mode_t mode = 0; MODE(flags, mode); return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { mode_t mode = 0; MODE(flags, mode); return opened(at, path, flags, mode); }

FILE *fopen(const char *path, const char *mode)
{
    if (named(AT_FDCWD, path) && fails(mode[0] == 'r' ? OPEN : CREATE))
        return NULL;
    return NEXT(fopen)(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    if (named(AT_FDCWD, path) && fails(mode[0] == 'r' ? OPEN : CREATE))
        return NULL;
    return NEXT(fopen64)(path, mode);
}

ssize_t read(int file, void *into, size_t count)
{
    return held(file) && fails(READ) ? -1 : syscall(SYS_read, file, into, count);
}

ssize_t write(int file, const void *from, size_t count)
{
    if (held(file) && fails(WRITE)) {
        if (board->error)
            return -1;
        count = (count + 1) / 2;
    }
    return syscall(SYS_write, file, from, count);
}

int ftruncate64(int file, off64_t length)
{
    return held(file) && board->error && fails(WRITE) ? -1 : syscall(SYS_ftruncate, file, length);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t count)
{
    return held(to) && board->error && fails(WRITE) ? -1 : syscall(SYS_sendfile, to, from, offset, count);
}

int fsync(int file) { return held(file) && fails(SYNC) ? -1 : syscall(SYS_fsync, file); }
int fdatasync(int file) { return held(file) && fails(SYNC) ? -1 : syscall(SYS_fdatasync, file); }
int flock(int file, int how) { return held(file) && fails(LOCK) ? -1 : syscall(SYS_flock, file, how); }

int renameat(int a, const char *old, int b, const char *new)
{
    return named(b, new) && fails(RENAME) ? -1 : syscall(SYS_renameat2, a, old, b, new, 0);
}

int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }

int mkdirat(int at, const char *path, mode_t mode)
{
    return named(at, path) && fails(MAKE) ? -1 : syscall(SYS_mkdirat, at, path, mode);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int at, const char *path, int flags)
{
    return named(at, path) && fails(REMOVE) ? -1 : syscall(SYS_unlinkat, at, path, flags);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int chmod(const char *path, mode_t mode)
{
    return named(AT_FDCWD, path) && fails(CHMOD) ? -1 : syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

int fchmod(int file, mode_t mode) { return held(file) && fails(CHMOD) ? -1 : syscall(SYS_fchmod, file, mode); }

int stat64(const char *path, struct stat64 *into)
{
    return named(AT_FDCWD, path) && fails(STAT) ? -1 : NEXT(stat64)(path, into);
}

int lstat64(const char *path, struct stat64 *into)
{
    return named(AT_FDCWD, path) && fails(STAT) ? -1 : NEXT(lstat64)(path, into);
}

int fstatat64(int at, const char *path, struct stat64 *into, int flags)
{
    return named(at, path) && fails(STAT) ? -1 : NEXT(fstatat64)(at, path, into, flags);
}

DIR *opendir(const char *path)
{
    return named(AT_FDCWD, path) && fails(LIST) ? NULL : NEXT(opendir)(path);
}

DIR *fdopendir(int file) { return held(file) && fails(LIST) ? NULL : NEXT(fdopendir)(file); }

/* -- sockets ------------------------------------------------------------------------------------------------------ */
int socket(int domain, int type, int protocol)
{
    return board && fails(SOCKET) ? -1 : syscall(SYS_socket, domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int pair[2])
{
    return board && fails(SOCKET) ? -1 : syscall(SYS_socketpair, domain, type, protocol, pair);
}

int bind(int socket, const struct sockaddr *to, socklen_t length)
{
    return board && fails(BIND) ? -1 : syscall(SYS_bind, socket, to, length);
}

int listen(int socket, int backlog) { return board && fails(LISTEN) ? -1 : syscall(SYS_listen, socket, backlog); }

int connect(int socket, const struct sockaddr *to, socklen_t length)
{
    return board && fails(CONNECT) ? -1 : syscall(SYS_connect, socket, to, length);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    return board && fails(RESOLVE) ? board->error : NEXT(getaddrinfo)(name, service, hints, found);
}

/* -- processes and memory ----------------------------------------------------------------------------------------- */
pid_t fork(void) { return board && fails(FORK) ? -1 : NEXT(fork)(); }
pid_t vfork(void) { return fork(); } /* a fork that may call functions, as the failing of one does */

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    if (board && fails(FORK))
        return board->error;
    return NEXT(posix_spawn)(pid, path, actions, attributes, arguments, environment);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*begin)(void *), void *with)
{
    if (board && fails(THREAD))
        return board->error;
    return NEXT(pthread_create)(thread, how, begin, with);
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

/* No memory for so many bytes: one large piece or all of them (MEMORY), or from one on nothing of any size (ALL). */
static int none(double size)
{
    if (!board)
        return 0;
    if (board->kind == ALL && atomic_load(&board->calls[ALL]) >= board->from) {
        atomic_fetch_add(&board->failed, 1);
        errno = ENOMEM;
        return 1;
    }
    return size >= large && (fails(MEMORY) | fails(ALL));
}

void *malloc(size_t size) { return none(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return none((double)count * size) ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return none(size) ? NULL : __libc_realloc(old, size); }

void *mmap(void *at, size_t size, int rights, int how, int file, off_t offset)
{
    if (how & MAP_ANONYMOUS && !(how & MAP_STACK) && none(0))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, rights, how, file, offset);
}

void *mmap64(void *at, size_t size, int rights, int how, int file, off_t offset)
{
    return mmap(at, size, rights, how, file, offset);
}
