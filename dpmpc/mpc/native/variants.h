/* Compiles the file BODY once for each kind of vector unit. In it, every function is `TARGET static ... NAME(f)(...)` and
VEC is a register's WIDTH words; outside, CHOOSE(f) is the variant for this processor. STORE_PAST writes a register to an
aligned place past the caches; PAST_IS_DONE when others are to read it. */

#define TARGET
#define NAME(f) f##_portable
#define VEC words2
#define WIDTH 2
#if DPMPC_X86
#define STORE_PAST(p, v) _mm_stream_si128((void *)(p), (__m128i)(v))
#define PAST_IS_DONE _mm_sfence()
#else
#define STORE_PAST(p, v) (*(VEC *)(p) = (v))
#define PAST_IS_DONE (void)0
#endif
#include BODY
#undef TARGET
#undef NAME
#undef VEC
#undef WIDTH
#undef STORE_PAST

#if DPMPC_X86
#define TARGET __attribute__((target("avx2")))
#define NAME(f) f##_avx2
#define VEC words4
#define WIDTH 4
#define STORE_PAST(p, v) _mm256_stream_si256((void *)(p), (__m256i)(v))
#include BODY
#undef TARGET
#undef NAME
#undef VEC
#undef WIDTH
#undef STORE_PAST

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_avx512
#define VEC words8
#define WIDTH 8
#define STORE_PAST(p, v) _mm512_stream_si512((void *)(p), (__m512i)(v))
#include BODY
#undef TARGET
#undef NAME
#undef VEC
#undef WIDTH
#undef STORE_PAST
#define CHOOSE(f) (HAS(HAS_AVX512) ? f##_avx512 : HAS(HAS_AVX2) ? f##_avx2 : f##_portable)
#else
#define CHOOSE(f) f##_portable
#endif
#undef PAST_IS_DONE
