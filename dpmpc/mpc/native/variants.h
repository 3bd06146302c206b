/* Compiles the file BODY once for each kind of vector unit. In it, every function is `TARGET static ... NAME(f)(...)`;
outside, CHOOSE(f) is the variant for this processor. STORE_PAST writes eight words
to a place of 64 bytes past the caches; PAST_IS_DONE when others are to read them. */

#define TARGET
#define NAME(f) f##_portable
#define STORE_PAST(p, v) (*(words8 *)(p) = (v))
#define PAST_IS_DONE
#include BODY
#undef TARGET
#undef NAME
#undef STORE_PAST
#undef PAST_IS_DONE

#if DPMPC_X86
#define TARGET __attribute__((target("avx2")))
#define NAME(f) f##_avx2
#define STORE_PAST(p, v)                                                \
    {                                                                   \
        const words8 both = v;                                          \
        const __m256i *half = (const __m256i *)&both;                   \
        _mm256_stream_si256((__m256i *)(p), half[0]);                   \
        _mm256_stream_si256((__m256i *)(p) + 1, half[1]);               \
    }
#define PAST_IS_DONE _mm_sfence()
#include BODY
#undef TARGET
#undef NAME
#undef STORE_PAST

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_avx512
#define STORE_PAST(p, v) _mm512_stream_si512((void *)(p), (__m512i)(v))
#include BODY
#undef TARGET
#undef NAME
#undef STORE_PAST
#undef PAST_IS_DONE

#define CHOOSE(f) (HAS(HAS_AVX512) ? f##_avx512 : HAS(HAS_AVX2) ? f##_avx2 : f##_portable)
#else
#define CHOOSE(f) f##_portable
#endif
