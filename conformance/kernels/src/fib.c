// Fibonacci numbers by the recursive definition: nothing but calls.
#include "kernel.h"

__attribute__((noinline)) static i64 fib(i32 n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

i64 run(i32 n) { return fib(n); }
