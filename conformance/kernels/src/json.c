// A JSON text (RFC 8259) parsed n times, recursively, numbers as doubles.
#include "kernel.h"

static const char text[] =
    "{\"abi\":1,\"flow_id\":\"release-gate\",\"step\":{\"id\":\"inventory\",\"role\":\"retrieval\","
    "\"config\":{\"depth\":3,\"ratio\":0.25,\"tiny\":1.5e-9,\"large\":-2.5E+12,\"strict\":true,\"note\":null}},\n"
    " \"claims\":[{\"claim_id\":\"c1\",\"subject\":\"pkg:golang/example.com/b@v1.0.0\",\"score\":9.8,"
    "\"text\":\"an \\\"escaped\\\" line\\nand \\u00e9\\u20ac\\ud83d\\ude00\"},\n"
    "  {\"claim_id\":\"c2\",\"subject\":\"pkg:npm/%40scope/name@2.3.4\",\"score\":-0.5,\"text\":\"\"},\n"
    "  {\"claim_id\":\"c3\",\"subject\":\"pkg:deb/debian/zlib1g@1.2.13\",\"score\":1e2,\"text\":\"tab\\tslash\\/\"}],\n"
    " \"matrix\":[[1,2,3,4],[5,6,7,8],[9,10,11,12],[0.1,0.22,0.333,0.4444]],\n"
    " \"datasets\":[{\"id\":\"sbom\",\"size\":123456,\"digest\":"
    "\"sha256:94885e60a7ac4ead17a69668ebba1925edd1553a00c0f4028d82af5b9d8f4065\",\"folder\":false},\n"
    "  {\"id\":\"vulns\",\"size\":9007199254740991,\"digest\":"
    "\"sha256:520b61cc4efe8dd79740a463bd009a1a31866d5f278a572a3071c650acae1a18\",\"folder\":true}],\n"
    " \"deep\":[[[[[[[[{\"a\":[{\"b\":[{}]}]}]]]]]]]],\"empty\":{},\"none\":[]}";

#define DEPTH_MAX 64

static const u8 *at;
static u64 sum; // of all that was seen
static i32 failed;

static void fail(void) { failed = 1; }

static void saw(u64 what) { sum = (sum ^ what) * 1099511628211u; }

static void space(void) {
  while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') {
    at++;
  }
}

static i32 take(u8 c) {
  if (*at != c) {
    return 0;
  }
  at++;
  return 1;
}

static void word(const char *w) {
  for (; *w != 0; w++) {
    if (!take((u8)*w)) {
      fail();
      return;
    }
  }
}

static i32 digit(void) { return *at >= '0' && *at <= '9'; }

static void number(void) {
  f64 sign = take('-') ? -1 : 1, value = 0, scale = 1;
  i32 exponent = 0, negative = 0;
  if (!digit()) {
    fail();
    return;
  }
  while (digit()) {
    value = value * 10 + (*at++ - '0');
  }
  if (take('.')) {
    while (digit()) {
      value = value * 10 + (*at++ - '0');
      scale *= 10;
    }
  }
  if (take('e') || take('E')) {
    negative = take('-');
    if (!negative) {
      take('+');
    }
    while (digit()) {
      exponent = exponent * 10 + (*at++ - '0');
    }
  }
  value = sign * value / scale;
  for (; exponent > 0; exponent--) {
    value = negative ? value / 10 : value * 10;
  }
  saw(bits(value));
}

static u32 hex4(void) {
  u32 code = 0;
  for (i32 i = 0; i < 4; i++) {
    u8 c = *at++;
    code <<= 4;
    if (c >= '0' && c <= '9') {
      code |= c - '0';
    } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
      code |= (c | 32) - 'a' + 10;
    } else {
      at--;
      fail();
      return 0;
    }
  }
  return code;
}

static void escape(void) {
  u8 c = *at++;
  switch (c) {
  case '"':
  case '\\':
  case '/':
    saw(c);
    return;
  case 'b':
    saw('\b');
    return;
  case 'f':
    saw('\f');
    return;
  case 'n':
    saw('\n');
    return;
  case 'r':
    saw('\r');
    return;
  case 't':
    saw('\t');
    return;
  case 'u': {
    u32 code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && take('\\') && take('u')) {
      code = 0x10000 + ((code - 0xd800) << 10) + (hex4() - 0xdc00);
    }
    saw(code);
    return;
  }
  default:
    at--;
    fail();
  }
}

static void string(void) {
  at++;
  while (*at != '"') {
    if (*at < ' ') {
      fail();
      return;
    }
    if (take('\\')) {
      escape();
      if (failed) {
        return;
      }
    } else {
      saw(*at++);
    }
  }
  at++;
}

static void value(i32 depth);

static void object(i32 depth) {
  at++;
  space();
  if (take('}')) {
    return;
  }
  do {
    space();
    if (*at != '"') {
      fail();
      return;
    }
    string();
    space();
    if (!take(':')) {
      fail();
      return;
    }
    value(depth + 1);
    space();
  } while (!failed && take(','));
  if (!take('}')) {
    fail();
  }
}

static void array(i32 depth) {
  at++;
  space();
  if (take(']')) {
    return;
  }
  do {
    value(depth + 1);
    space();
  } while (!failed && take(','));
  if (!take(']')) {
    fail();
  }
}

static void value(i32 depth) {
  if (failed || depth > DEPTH_MAX) {
    fail();
    return;
  }
  space();
  saw(*at);
  switch (*at) {
  case '{':
    object(depth);
    return;
  case '[':
    array(depth);
    return;
  case '"':
    string();
    return;
  case 't':
    word("true");
    return;
  case 'f':
    word("false");
    return;
  case 'n':
    word("null");
    return;
  default:
    number();
  }
}

i64 run(i32 n) {
  sum = 14695981039346656037u;
  failed = 0;
  for (i32 i = 0; i < n; i++) {
    at = (const u8 *)text;
    value(0);
    space();
    if (failed || *at != 0) {
      return -1;
    }
  }
  return (i64)(sum >> 1);
}
