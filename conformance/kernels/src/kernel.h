// What every kernel shares: the exports a guest must have, around one function.
// Each kernel is one C file that includes this and defines run.
#ifndef KERNEL_H
#define KERNEL_H

typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef double f64;

#define EXPORT(name) __attribute__((export_name(name)))

// run does work that grows with n and returns a checksum of all its results.
EXPORT("run") i64 run(i32 n);

// One message at a time: a request is the decimal n, a response the checksum.
static u8 message[4096];

EXPORT("writ_alloc") u8 *writ_alloc(u32 size) {
  return size <= sizeof message ? message : 0;
}

EXPORT("writ_free") void writ_free(u8 *at, u32 size) {
  (void)at;
  (void)size;
}

EXPORT("writ_execute") u64 writ_execute(const u8 *at, u32 size) {
  i32 n = 0;
  for (u32 i = 0; i < size && at[i] >= '0' && at[i] <= '9'; i++) {
    n = n * 10 + (at[i] - '0');
  }
  static const u8 before[] = "{\"claims\":[],\"evidence\":[],\"artifacts\":[],\"output\":\"";
  u8 digits[20];
  u32 count = 0, end = 0;
  u64 sum = (u64)run(n);
  do {
    digits[count++] = (u8)('0' + sum % 10);
    sum /= 10;
  } while (sum != 0);
  while (before[end] != 0) {
    message[end] = before[end];
    end++;
  }
  while (count > 0) {
    message[end++] = digits[--count];
  }
  message[end++] = '"';
  message[end++] = '}';
  return (u64)(u32)message << 32 | end;
}

// next is the pseudo-random sequence all kernels draw their data from
// (Numerical Recipes' linear congruence).
static inline u32 next(u32 *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state;
}

// bits returns the bits of x, as a checksum must not depend on rounding twice.
static inline u64 bits(f64 x) {
  u64 u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}

#endif
