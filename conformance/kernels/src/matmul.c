// The product of two matrices of n by n doubles.
#include "kernel.h"

#define SIZE_MAX 512

static f64 a[SIZE_MAX][SIZE_MAX], b[SIZE_MAX][SIZE_MAX], c[SIZE_MAX][SIZE_MAX];

i64 run(i32 n) {
  u32 state = 1;
  if (n > SIZE_MAX) {
    n = SIZE_MAX;
  }
  for (i32 i = 0; i < n; i++) {
    for (i32 j = 0; j < n; j++) {
      a[i][j] = next(&state) / 4294967296.0;
      b[i][j] = next(&state) / 4294967296.0 - 0.5;
    }
  }
  for (i32 i = 0; i < n; i++) {
    for (i32 j = 0; j < n; j++) {
      c[i][j] = 0;
    }
    for (i32 k = 0; k < n; k++) {
      f64 factor = a[i][k];
      for (i32 j = 0; j < n; j++) {
        c[i][j] += factor * b[k][j];
      }
    }
  }
  u64 sum = 0;
  for (i32 i = 0; i < n; i++) {
    for (i32 j = 0; j < n; j++) {
      sum = sum * 31 + bits(c[i][j]);
    }
  }
  return (i64)sum;
}
