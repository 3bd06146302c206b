/* Compiles the file BODY once for each kind of AES unit. In it, every function is `TARGET static ... NAME(f)(...)`, VEC is a
register's WIDTH words (WIDTH / 2 blocks), and NAME(encrypt)(b, n, key) does AES-128 on n registers under one key, or
NAME(encrypt_two) under two; LATER(a, b) is a register of the words of a, then b, from the second on. Outside, CHOOSE_AES(f)
is the variant for this processor, of those that HAS_AES can have. */

#define INLINE TARGET static inline __attribute__((always_inline))

#if DPMPC_X86
#define SWAPPED _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define TARGET __attribute__((target("aes,sse4.1")))
#define NAME(f) f##_aes
#define VEC words2
#define WIDTH 2
#define ROUND_KEY(at) (*(const words2 *)(at))
#define SWAP_BYTES(v) ((words2)_mm_shuffle_epi8((__m128i)(v), SWAPPED))
#define ENCRYPT(b, k) ((words2)_mm_aesenc_si128((__m128i)(b), (__m128i)(k)))
#define UNPACK(half, a, b) ((words2)_mm_unpack##half##_epi64((__m128i)(a), (__m128i)(b)))
#define LATER(a, b) ((words2)_mm_alignr_epi8((__m128i)(b), (__m128i)(a), 8))
#define ENCRYPT_LAST(b, k) ((words2)_mm_aesenclast_si128((__m128i)(b), (__m128i)(k)))
#include "aes_rounds.h"
#include BODY
#include "aes_done.h"

#define TARGET __attribute__((target("vaes,avx2,aes")))
#define NAME(f) f##_vaes
#define VEC words4
#define WIDTH 4
#define ROUND_KEY(at) ((words4)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(at))))
#define SWAP_BYTES(v) ((words4)_mm256_shuffle_epi8((__m256i)(v), _mm256_broadcastsi128_si256(SWAPPED)))
#define ENCRYPT(b, k) ((words4)_mm256_aesenc_epi128((__m256i)(b), (__m256i)(k)))
#define UNPACK(half, a, b) ((words4)_mm256_unpack##half##_epi64((__m256i)(a), (__m256i)(b)))
#define LATER(a, b) \
    ((words4)_mm256_alignr_epi8(_mm256_permute2x128_si256((__m256i)(a), (__m256i)(b), 0x21), (__m256i)(a), 8))
#define ENCRYPT_LAST(b, k) ((words4)_mm256_aesenclast_epi128((__m256i)(b), (__m256i)(k)))
#include "aes_rounds.h"
#include BODY
#include "aes_done.h"

#define TARGET __attribute__((target("vaes,aes,avx512f,avx512bw,avx512dq,avx512vl")))
#define NAME(f) f##_vaes512
#define VEC words8
#define WIDTH 8
#define ROUND_KEY(at) ((words8)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(at))))
#define SWAP_BYTES(v) ((words8)_mm512_shuffle_epi8((__m512i)(v), _mm512_broadcast_i32x4(SWAPPED)))
#define ENCRYPT(b, k) ((words8)_mm512_aesenc_epi128((__m512i)(b), (__m512i)(k)))
#define UNPACK(half, a, b) ((words8)_mm512_unpack##half##_epi64((__m512i)(a), (__m512i)(b)))
#define LATER(a, b) ((words8)_mm512_alignr_epi64((__m512i)(b), (__m512i)(a), 1))
#define ENCRYPT_LAST(b, k) ((words8)_mm512_aesenclast_epi128((__m512i)(b), (__m512i)(k)))
#include "aes_rounds.h"
#include BODY
#include "aes_done.h"
#undef SWAPPED
#define CHOOSE_AES(f) (HAS(HAS_VAES | HAS_AVX512) ? f##_vaes512 : HAS(HAS_VAES | HAS_AVX2) ? f##_vaes : f##_aes)
#elif DPMPC_ARM
#define TARGET ARM_CRYPTO
#define NAME(f) f##_aes
#define VEC words2
#define WIDTH 2
#define ROUND_KEY(at) (*(const words2 *)(at))
#define SWAP_BYTES(v) ((words2)vrev64q_u8((uint8x16_t)(v)))
#define UNPACK(half, a, b) UNPACK_##half(a, b)
#define LATER(a, b) ((words2)vextq_u64((uint64x2_t)(a), (uint64x2_t)(b), 1))
#define UNPACK_lo(a, b) ((words2)vzip1q_u64((uint64x2_t)(a), (uint64x2_t)(b)))
#define UNPACK_hi(a, b) ((words2)vzip2q_u64((uint64x2_t)(a), (uint64x2_t)(b)))
#include "aes_rounds.h"
#include BODY
#include "aes_done.h"
#undef UNPACK_lo
#undef UNPACK_hi
#define CHOOSE_AES(f) f##_aes
#else
#define NO_AES_UNIT /* nothing is ever called: take_schedule refuses */
#endif

#undef INLINE
