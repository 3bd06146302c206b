/* What every file of the extension shares: the processor's features, checked buffers, vectors.

Rules for a kernel: no secret decides a branch or an address; arguments are checked before the interpreter's lock is
released; an output overlaps no input. Its NumPy twin, in the Python file beside it, gives the same bits. */

#ifndef DPMPC_KERNELS_H
#define DPMPC_KERNELS_H

#include "../../buffers.h"
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are little-endian; without the extension the NumPy twins are used"
#endif
#if !defined(__SIZEOF_INT128__)
#error "products of two words need 128 bits; without the extension the NumPy twins are used"
#endif

#if defined(__x86_64__)
#define DPMPC_X86 1
#include <immintrin.h>
#else
#define DPMPC_X86 0
#endif

#if defined(__aarch64__)
#define DPMPC_ARM 1
#include <arm_neon.h>
#if defined(__ARM_FEATURE_AES) || defined(__ARM_FEATURE_CRYPTO) /* every processor that is compiled for has the units */
#define ARM_CRYPTO
#elif defined(__clang__)
#define ARM_CRYPTO __attribute__((target("aes")))
#else
#define ARM_CRYPTO __attribute__((target("+crypto")))
#endif
#else
#define DPMPC_ARM 0
#endif

typedef unsigned __int128 uint128;
/* As many words as a vector register has: of SSE2 or NEON, of AVX2, of AVX-512. Code takes the width of its variant: a
compiler lowers wider vectors through the stack. Loads and stores need no alignment. */
typedef uint64_t words2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint64_t words4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t words8 __attribute__((vector_size(64), aligned(8), may_alias));

enum feature {
    HAS_AVX2 = 1,
    HAS_AVX512 = 2,  /* F, BW, DQ, VL */
    HAS_AES = 4,     /* AES-NI, or AES of NEON */
    HAS_VAES = 8,    /* AES on 256 bits, and with AVX-512 on 512 */
    HAS_PCLMUL = 16, /* carry-less products of 64 bits: PCLMULQDQ, or PMULL of NEON */
    HAS_VPCLMUL = 32,/* the same, two at a time on 256 bits, and with AVX-512 four */
};

/* Features that may be used: the processor's, less those that `restrict_to` has taken away. */
extern unsigned dpmpc_features;
#define HAS(f) ((dpmpc_features & (f)) == (unsigned)(f))

/* A contiguous array that a caller gave, with its number of items. */
typedef struct {
    Py_buffer view;
    Py_ssize_t count;
} array;

/* Takes `object` as an array of unsigned words ('Q'), int32 ('i') or bytes ('B'), at least `least` items long. Returns 0, or -1
with an exception. */
int take(array *a, PyObject *object, const char *name, char kind, int writable, Py_ssize_t least);
/* -1 with an exception if the two share memory. */
int apart(const array *a, const array *b, const char *names);
/* Releases arrays; those that were never taken are skipped if they were zeroed. */
void give_back(array *arrays, int count);

/* out = words position, position + 1, ... of the key stream of AES-128 in counter mode, XOR `in` unless that is NULL; in and
out may be the same. */
#define AES_SCHEDULE 176 /* bytes: 11 round keys */
void aes_stream(const uint8_t *schedule, uint64_t position, const uint64_t *in, uint64_t *out, Py_ssize_t count);
/* The round keys of a key of 16 bytes; nothing without an AES unit. */
void aes_expand(const uint8_t *key, uint8_t *schedule);
/* Takes round keys; -1 with an exception, also where there is no AES unit. */
int take_schedule(array *a, PyObject *object);

/* Transposes eight times 64 x 64 bits, in place: rows of eight words, bit l of word w of row i goes to bit i of row l. */
void transpose_tile(uint64_t *x);

/* Does parts begin .. end of a kernel's work; parts write to different places. */
typedef void work_part(const void *of, Py_ssize_t begin, Py_ssize_t end);
/* All `count` parts, shared out among the threads that `use_threads` has started; called without the interpreter's lock. */
void share_out(Py_ssize_t count, work_part *part, const void *of);

/* One file, one function that adds its functions to the module. */
int add_features(PyObject *module);
int add_planes(PyObject *module);
int add_mersenne(PyObject *module);
int add_aes(PyObject *module);
int add_program(PyObject *module);
int add_field(PyObject *module);
int add_ot(PyObject *module);
int add_half_gates(PyObject *module);
int add_gf64(PyObject *module);
int add_crew(PyObject *module);

#endif
