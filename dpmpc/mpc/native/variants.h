/* Compiles the file BODY once for each kind of vector unit. In it, every function is `TARGET static ... NAME(f)(...)`;
outside, CHOOSE(f) is the variant for this processor. */

#define TARGET
#define NAME(f) f##_portable
#include BODY
#undef TARGET
#undef NAME

#if DPMPC_X86
#define TARGET __attribute__((target("avx2")))
#define NAME(f) f##_avx2
#include BODY
#undef TARGET
#undef NAME

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_avx512
#include BODY
#undef TARGET
#undef NAME

#define CHOOSE(f) (HAS(HAS_AVX512) ? f##_avx512 : HAS(HAS_AVX2) ? f##_avx2 : f##_portable)
#else
#define CHOOSE(f) f##_portable
#endif
