// A guest in C on wasi-libc: the heap, printf, qsort, libm, NaNs, clocks, random
// numbers and files. It answers with what it saw, as lines of one JSON string.
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("writ_v1"), import_name(name)))

IMPORT("clock_now") int64_t clock_now(void);
IMPORT("random_fill") int32_t random_fill(void *at, uint32_t size);
IMPORT("log") int32_t log_line(int32_t level, const char *at, uint32_t size);

EXPORT("writ_alloc") void *writ_alloc(uint32_t size) { return malloc(size ? size : 1); }

EXPORT("writ_free") void writ_free(void *at, uint32_t size) {
  (void)size;
  free(at);
}

static char *report; // grows as it is written
static size_t report_size, report_room;

static void put(char c) {
  if (report_size == report_room) {
    report_room = report_room ? report_room * 2 : 64;
    report = realloc(report, report_room);
    if (!report) abort();
  }
  report[report_size++] = c;
}

static void raw(const char *text) {
  while (*text) put(*text++);
}

// say appends formatted text, as the inside of a JSON string.
static void say(const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  for (const char *c = line; *c; c++) {
    if (*c == '\n') {
      raw("\\n");
    } else {
      if (*c == '"' || *c == '\\') put('\\');
      put(*c);
    }
  }
}

static uint64_t bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static uint32_t bits32(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static void floats(double x) {
  double (*const functions[])(double) = {sqrt, sin, cos, exp, log, tgamma, cbrt, floor, rint, atan};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    double y = functions[i](x * (double)(i + 1));
    say("%zu: %.17g %e %a %f %016llx\n", i, y, y, y, (double)(float)y, bits(y));
  }
  say("pow %.17g fmod %.17g hypot %.17g\n", pow(x, 3.7), fmod(x * 1e6, 0.3), hypot(x, 1e200));
  char *end;
  say("strtod %.17g %.17g\n", strtod("0.1e-310 ", &end), strtod("179769313486231570e291", &end));
}

// nans makes NaNs in several ways; volatile keeps the compiler from it.
static void nans(void) {
  volatile double zero = 0, infinity = HUGE_VAL, payload;
  volatile float zero32 = 0;
  uint64_t signalling = 0xfff4000000000123;
  memcpy((void *)&payload, &signalling, sizeof signalling);
  double made[] = {zero / zero, -(zero / zero), infinity - infinity, zero * infinity, sqrt(zero - 1), payload + 1,
                   payload * payload, (double)(float)payload, -payload, copysign(payload, 1), fmin(payload, 1)};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    say("nan %zu %016llx\n", i, bits(made[i]));
  }
  say("nan float %08x %08x\n", bits32(zero32 / zero32), bits32((float)payload));
}

static int by_value(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static void heap(uint32_t seed) {
  enum { blocks = 500 };
  uint32_t *block[blocks] = {0};
  uint64_t sum = 0;
  srand(seed);
  for (int i = 0; i < 20000; i++) {
    int at = rand() % blocks;
    size_t count = 1 + (size_t)(rand() % 700);
    if (block[at]) {
      sum = sum * 31 + block[at][0] + (uint32_t)(uintptr_t)block[at];
      free(block[at]);
    }
    block[at] = malloc(count * sizeof **block);
    if (!block[at]) abort();
    block[at][0] = (uint32_t)count;
  }
  uint32_t sorted[3000];
  for (int i = 0; i < 3000; i++) sorted[i] = (uint32_t)rand();
  qsort(sorted, 3000, sizeof *sorted, by_value);
  for (int i = 0; i < 3000; i++) sum = sum * 31 + sorted[i];
  for (int i = 0; i < blocks; i++) free(block[i]);
  say("heap %016llx\n", sum);
}

static void clocks(void) {
  struct timespec now, pause = {2, 5000000};
  clock_gettime(CLOCK_REALTIME, &now);
  time_t seconds = now.tv_sec;
  char text[64];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ %A", gmtime(&seconds));
  say("now %s %ld\n", text, now.tv_nsec);
  nanosleep(&pause, 0);
  clock_gettime(CLOCK_MONOTONIC, &now);
  say("monotonic %lld %ld, host %lld\n", (long long)now.tv_sec, now.tv_nsec, (long long)clock_now());
}

static void chance(void) {
  unsigned char a[32], b[16];
  if (getentropy(a, sizeof a) != 0 || random_fill(b, sizeof b) != 0) abort();
  say("random ");
  for (size_t i = 0; i < sizeof a; i++) say("%02x", a[i]);
  for (size_t i = 0; i < sizeof b; i++) say("%02x", b[i]);
  say("\n");
}

static void files(const char *path) {
  DIR *dir = opendir(path);
  if (!dir) {
    say("opendir %s: %s\n", path, strerror(errno));
    return;
  }
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (entry->d_name[0] == '.') continue;
    char name[512], text[256];
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (entry->d_type == DT_DIR) {
      files(name);
      continue;
    }
    FILE *file = fopen(name, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = 0;
    say("file %s inode %llu: %s\n", name, (unsigned long long)entry->d_ino, text);
    if (file) fclose(file);
  }
  closedir(dir);
  say("write %s\n", fopen("/new", "w") ? "allowed" : strerror(errno));
}

static int depth(int n) {
  volatile char frame[64];
  frame[n % 64] = (char)n;
  return n == 0 ? 0 : 1 + depth(n - 1) + frame[n % 64] - (char)n;
}

static int constructed; // by a constructor, before anything else ran

__attribute__((constructor)) static void construct(void) { constructed = 1 + (int)(clock_now() % 7); }

EXPORT("writ_execute") uint64_t writ_execute(const char *request, uint32_t size) {
  report_size = 0;
  raw("{\"claims\":[],\"evidence\":[],\"artifacts\":[],\"output\":\"");
  say("request of %u bytes, constructed %d, depth %d\n", size, constructed, depth(300));
  floats(size / 7.0);
  nans();
  heap((uint32_t)request[size - 1]);
  clocks();
  chance();
  files("/");
  raw("\"}");
  printf("a line of %zu bytes\n", report_size);
  fprintf(stderr, "and one without an end");
  fflush(0);
  log_line(1, report, 60);
  return (uint64_t)(uintptr_t)report << 32 | report_size;
}
