// The Mandelbrot set on n by n points, 50 iterations each at most.
#include "kernel.h"

#define ITERATIONS_MAX 50

i64 run(i32 n) {
  u64 sum = 0;
  for (i32 row = 0; row < n; row++) {
    f64 ci = 2.0 * row / n - 1.0;
    for (i32 column = 0; column < n; column++) {
      f64 cr = 2.0 * column / n - 1.5;
      f64 zr = 0, zi = 0, rr = 0, ii = 0;
      u32 count = 0;
      while (count < ITERATIONS_MAX && rr + ii <= 4.0) {
        zi = 2.0 * zr * zi + ci;
        zr = rr - ii + cr;
        rr = zr * zr;
        ii = zi * zi;
        count++;
      }
      sum = sum * 31 + count;
    }
  }
  return (i64)sum;
}
