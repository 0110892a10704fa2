// SHA-256 (FIPS 180-4) of a message of n KiB; the checksum is its first 8 bytes.
#include "kernel.h"

#define KIB 1024

static const u32 k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 hash[8];
static u8 tail[64]; // what does not fill a block yet
static u64 total;   // bytes so far

static inline u32 rotate(u32 x, u32 by) { return x >> by | x << (32 - by); }

static void block(const u8 *p) {
  u32 w[64];
  for (u32 i = 0; i < 16; i++, p += 4) {
    w[i] = (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
  }
  for (u32 i = 16; i < 64; i++) {
    u32 s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    u32 s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  u32 a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4], f = hash[5], g = hash[6], h = hash[7];
  for (u32 i = 0; i < 64; i++) {
    u32 t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
    u32 t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  hash[0] += a, hash[1] += b, hash[2] += c, hash[3] += d, hash[4] += e, hash[5] += f, hash[6] += g, hash[7] += h;
}

static void begin(void) {
  static const u32 initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (u32 i = 0; i < 8; i++) {
    hash[i] = initial[i];
  }
  total = 0;
}

static void update(const u8 *p, u32 size) {
  u32 have = (u32)(total % 64);
  total += size;
  while (size > 0) {
    if (have == 0 && size >= 64) {
      block(p);
      p += 64, size -= 64;
      continue;
    }
    tail[have++] = *p++;
    size--;
    if (have == 64) {
      block(tail);
      have = 0;
    }
  }
}

static void finish(void) {
  static const u8 one = 0x80, zero = 0;
  u64 length = total * 8;
  u8 end[8];
  for (u32 i = 0; i < 8; i++) {
    end[i] = (u8)(length >> (56 - 8 * i));
  }
  update(&one, 1);
  while (total % 64 != 56) {
    update(&zero, 1);
  }
  update(end, 8);
}

i64 run(i32 n) {
  static u8 data[KIB];
  u32 state = 1;
  for (u32 i = 0; i < KIB; i++) {
    data[i] = (u8)(next(&state) >> 24);
  }
  begin();
  for (i32 i = 0; i < n; i++) {
    update(data, KIB);
  }
  finish();
  return (i64)((u64)hash[0] << 32 | hash[1]);
}
