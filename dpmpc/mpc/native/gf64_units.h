/* Compiles gf64_body.h once for each kind of unit for carry-less products. In it, every function is `TARGET static ...
NAME(f)(...)`, VEC is a register's WIDTH words, EVEN(a, b) and ODD(a, b) are the products, of 128 bits each, of every
second word from the first and from the second on, and UNPACK brings words back side by side. CHOOSE(f) is the variant for
this processor. */

/* -- by holes: every fifth bit, so that at most 13 ones are added up in five bits --------------------------------------- */
static inline words2 by_holes(uint64_t a, uint64_t b) {
    const uint64_t hole = 0x1084210842108421u; /* bits 0, 5, ..., 60 */
    uint64_t x[5], y[5];
    uint128 sum[5] = {0};
    for (int k = 0; k < 5; k++) x[k] = a & (hole << k), y[k] = b & (hole << k);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) sum[(i + j) % 5] ^= (uint128)x[i] * y[j];
    uint128 total = 0, mask = 0;
    for (int k = 0; k < 128; k += 5) mask |= (uint128)1 << k;
    for (int k = 0; k < 5; k++) total |= sum[k] & (mask << k);
    return (words2){(uint64_t)total, (uint64_t)(total >> 64)};
}

#define UNPACK_lo(a, b) ((words2){(a)[0], (b)[0]})
#define UNPACK_hi(a, b) ((words2){(a)[1], (b)[1]})

#define TARGET
#define NAME(f) f##_portable
#define VEC words2
#define WIDTH 2
#define EVEN(a, b) by_holes((a)[0], (b)[0])
#define ODD(a, b) by_holes((a)[1], (b)[1])
#define UNPACK(half, a, b) UNPACK_##half(a, b)
#include "gf64_body.h"

#if DPMPC_X86
#define TARGET __attribute__((target("pclmul,sse4.1")))
#define NAME(f) f##_pclmul
#define VEC words2
#define WIDTH 2
#define EVEN(a, b) ((words2)_mm_clmulepi64_si128((__m128i)(a), (__m128i)(b), 0x00))
#define ODD(a, b) ((words2)_mm_clmulepi64_si128((__m128i)(a), (__m128i)(b), 0x11))
#define UNPACK(half, a, b) ((words2)_mm_unpack##half##_epi64((__m128i)(a), (__m128i)(b)))
#include "gf64_body.h"

/* Sums and transposes on 256 bits, products on halves. */
#define TARGET __attribute__((target("pclmul,avx2")))
#define NAME(f) f##_avx2
#define VEC words4
#define WIDTH 4
#define HALVES(a, b, which)                                                                                              \
    ((words4)_mm256_set_m128i(                                                                                           \
        _mm_clmulepi64_si128(_mm256_extracti128_si256((__m256i)(a), 1), _mm256_extracti128_si256((__m256i)(b), 1), which), \
        _mm_clmulepi64_si128(_mm256_castsi256_si128((__m256i)(a)), _mm256_castsi256_si128((__m256i)(b)), which)))
#define EVEN(a, b) HALVES(a, b, 0x00)
#define ODD(a, b) HALVES(a, b, 0x11)
#define UNPACK(half, a, b) ((words4)_mm256_unpack##half##_epi64((__m256i)(a), (__m256i)(b)))
#include "gf64_body.h"
#undef HALVES

#define TARGET __attribute__((target("vpclmulqdq,pclmul,avx2")))
#define NAME(f) f##_vpclmul
#define VEC words4
#define WIDTH 4
#define EVEN(a, b) ((words4)_mm256_clmulepi64_epi128((__m256i)(a), (__m256i)(b), 0x00))
#define ODD(a, b) ((words4)_mm256_clmulepi64_epi128((__m256i)(a), (__m256i)(b), 0x11))
#define UNPACK(half, a, b) ((words4)_mm256_unpack##half##_epi64((__m256i)(a), (__m256i)(b)))
#include "gf64_body.h"

#define TARGET __attribute__((target("vpclmulqdq,pclmul,avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_vpclmul512
#define VEC words8
#define WIDTH 8
#define EVEN(a, b) ((words8)_mm512_clmulepi64_epi128((__m512i)(a), (__m512i)(b), 0x00))
#define ODD(a, b) ((words8)_mm512_clmulepi64_epi128((__m512i)(a), (__m512i)(b), 0x11))
#define UNPACK(half, a, b) ((words8)_mm512_unpack##half##_epi64((__m512i)(a), (__m512i)(b)))
#include "gf64_body.h"

#define CHOOSE(f)                                               \
    (HAS(HAS_VPCLMUL | HAS_PCLMUL | HAS_AVX512) ? f##_vpclmul512 \
     : HAS(HAS_VPCLMUL | HAS_PCLMUL | HAS_AVX2) ? f##_vpclmul    \
     : HAS(HAS_PCLMUL | HAS_AVX2)               ? f##_avx2       \
     : HAS(HAS_PCLMUL)                          ? f##_pclmul     \
                                                : f##_portable)
#elif DPMPC_ARM
#define TARGET ARM_CRYPTO
#define NAME(f) f##_pmull
#define VEC words2
#define WIDTH 2
#define EVEN(a, b) ((words2)vmull_p64((poly64_t)(a)[0], (poly64_t)(b)[0]))
#define ODD(a, b) ((words2)vmull_high_p64((poly64x2_t)(a), (poly64x2_t)(b)))
#define UNPACK(half, a, b) UNPACK_##half(a, b)
#include "gf64_body.h"
#define CHOOSE(f) (HAS(HAS_PCLMUL) ? f##_pmull : f##_portable)
#else
#define CHOOSE(f) f##_portable
#endif

#undef UNPACK_lo
#undef UNPACK_hi
