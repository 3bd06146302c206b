/* For a process under Valgrind: memory whose bits are "undefined" stands for secrets. Valgrind follows undefined bits
through every instruction and counts each jump that is decided by one, and each address that is made of one. */

#include <stddef.h>
#include <stdint.h>
#include <valgrind/memcheck.h>

void poison(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_UNDEFINED(at, size); }
void forgive(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_DEFINED(at, size); }
size_t undefined_bytes(const unsigned char *at, size_t size) {
    size_t found = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char bits = 0;
        (void)VALGRIND_GET_VBITS(at + i, &bits, 1);
        found += bits != 0;
    }
    return found;
}
unsigned found(void) { return VALGRIND_COUNT_ERRORS; }

/* Two functions that must be caught. */
static volatile uint64_t seen;
void branch_on(const uint64_t *secret) {
    if (*secret & 1) seen = 1;
}
void read_at(const uint64_t *secret, const uint64_t *table) { seen = table[*secret & 7]; }
