// n pseudo-random integers sorted, half by quicksort, half by heapsort.
#include "kernel.h"

#define COUNT_MAX 1048576
#define SHORT 16

static i32 values[COUNT_MAX];

static void swap(i32 *a, i32 *b) {
  i32 t = *a;
  *a = *b;
  *b = t;
}

static void insertion(i32 *v, i32 n) {
  for (i32 i = 1; i < n; i++) {
    i32 x = v[i], j = i;
    for (; j > 0 && v[j - 1] > x; j--) {
      v[j] = v[j - 1];
    }
    v[j] = x;
  }
}

static void quicksort(i32 *v, i32 n) {
  while (n > SHORT) {
    i32 middle = n / 2;
    if (v[middle] < v[0]) swap(&v[middle], &v[0]);
    if (v[n - 1] < v[0]) swap(&v[n - 1], &v[0]);
    if (v[n - 1] < v[middle]) swap(&v[n - 1], &v[middle]);
    i32 pivot = v[middle], i = 0, j = n - 1;
    while (i <= j) {
      while (v[i] < pivot) i++;
      while (v[j] > pivot) j--;
      if (i <= j) swap(&v[i++], &v[j--]);
    }
    if (j + 1 < n - i) { // recurse into the shorter part
      quicksort(v, j + 1);
      v += i, n -= i;
    } else {
      quicksort(v + i, n - i);
      n = j + 1;
    }
  }
  insertion(v, n);
}

static void sift(i32 *v, i32 at, i32 n) {
  i32 x = v[at];
  for (;;) {
    i32 child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && v[child + 1] > v[child]) child++;
    if (v[child] <= x) break;
    v[at] = v[child];
    at = child;
  }
  v[at] = x;
}

static void heapsort(i32 *v, i32 n) {
  for (i32 i = n / 2 - 1; i >= 0; i--) {
    sift(v, i, n);
  }
  for (i32 end = n - 1; end > 0; end--) {
    swap(&v[0], &v[end]);
    sift(v, 0, end);
  }
}

i64 run(i32 n) {
  u32 state = 1;
  if (n > COUNT_MAX) {
    n = COUNT_MAX;
  }
  for (i32 i = 0; i < n; i++) {
    values[i] = (i32)next(&state);
  }
  quicksort(values, n / 2);
  heapsort(values + n / 2, n - n / 2);
  u64 sum = 0;
  for (i32 i = 0; i < n; i++) {
    sum = sum * 31 + (u32)values[i];
  }
  return (i64)sum;
}
