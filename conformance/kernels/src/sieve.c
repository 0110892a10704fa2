// The number of primes up to n, by a sieve in segments.
#include "kernel.h"

#define SEGMENT 32768
#define ROOT_MAX 46341 // more than the root of any n

static u8 small[ROOT_MAX];
static u32 primes[5000], multiples[5000];
static u8 segment[SEGMENT];

i64 run(i32 n) {
  for (u32 i = 0; i < ROOT_MAX; i++) {
    small[i] = 1;
  }
  u32 root = 1, count = 0;
  while ((u64)(root + 1) * (root + 1) <= (u64)n) {
    root++;
  }
  for (u32 i = 2; i <= root; i++) {
    if (!small[i]) {
      continue;
    }
    primes[count] = i;
    multiples[count++] = i * i;
    for (u32 j = i * i; j <= root; j += i) {
      small[j] = 0;
    }
  }
  i64 found = 0;
  for (i64 low = 0; low <= n; low += SEGMENT) {
    for (u32 i = 0; i < SEGMENT; i++) {
      segment[i] = 1;
    }
    for (u32 p = 0; p < count; p++) {
      u32 j = multiples[p];
      for (; j < SEGMENT; j += primes[p]) {
        segment[j] = 0;
      }
      multiples[p] = j - SEGMENT;
    }
    for (i64 i = low < 2 ? 2 : low; i < low + SEGMENT && i <= n; i++) {
      found += segment[i - low];
    }
  }
  return found;
}
