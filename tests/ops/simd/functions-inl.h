// The table of one instruction set. Its file in src/ops/cpu/simd is included before this one.

#include "tests/ops/simd/functions.h"

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

namespace {

const float* floats(const std::byte* p) {
  return reinterpret_cast<const float*>(p);
}
const int32_t* integers(const std::byte* p) {
  return reinterpret_cast<const int32_t*>(p);
}
const uint16_t* words(const std::byte* p) {
  return reinterpret_cast<const uint16_t*>(p);
}
const int8_t* signed_bytes(const std::byte* p) {
  return reinterpret_cast<const int8_t*>(p);
}

void put(std::byte* p, F32 x) {
  store(reinterpret_cast<float*>(p), x);
}
void put(std::byte* p, I32 x) {
  store(reinterpret_cast<int32_t*>(p), x);
}
void put(std::byte* p, U8 x) {
  store_u8(p, x);
}
void put(std::byte* p, float x) {
  __builtin_memcpy(p, &x, sizeof(x));
}
void put(std::byte* p, int32_t x) {
  __builtin_memcpy(p, &x, sizeof(x));
}

/// How many lanes an operand says, 0 .. 16.
int some_lanes(const std::byte* p) {
  return static_cast<int>(*p) % 17;
}

template <typename Op>
constexpr SimdFunction of_floats(const char* name, Op, Numbers kind = Numbers::f32) {
  return {
      .name = name,
      .a = kind,
      .b = kind,
      .c = kind,
      .result = Numbers::f32,
      .apply = [](const std::byte* a, const std::byte* b, const std::byte* c, std::byte* result) {
        put(result, Op{}(load(floats(a)), load(floats(b)), load(floats(c))));
      }
  };
}

template <typename Op>
constexpr SimdFunction of_integers(const char* name, Op, Numbers gives = Numbers::i32) {
  return {
      .name = name,
      .a = Numbers::i32,
      .b = Numbers::i32,
      .c = Numbers::i32,
      .result = gives,
      .apply = [](const std::byte* a, const std::byte* b, const std::byte*, std::byte* out) {
        put(out, Op{}(load(integers(a)), load(integers(b))));
      }
  };
}

template <typename Op>
constexpr SimdFunction of_bytes(const char* name, Op, Numbers gives = Numbers::bytes) {
  return {
      .name = name,
      .a = Numbers::bytes,
      .b = Numbers::bytes,
      .c = Numbers::bytes,
      .result = gives,
      .apply = [](const std::byte* a, const std::byte* b, const std::byte*, std::byte* out) {
        put(out, Op{}(load_u8(a), load_u8(b)));
      }
  };
}

/// acc, weights and activations.
template <typename Op>
constexpr SimdFunction of_products(const char* name, Op, Numbers weights) {
  return {
      .name = name,
      .a = Numbers::i32,
      .b = weights,
      .c = Numbers::bytes,
      .result = Numbers::i32,
      .apply = [](const std::byte* a, const std::byte* b, const std::byte* c, std::byte* result) {
        put(result, Op{}(load(integers(a)), load_u8(b), load(integers(c))));
      }
  };
}

/// Functions of memory: Op reads a (and b) and writes.
template <typename Op>
constexpr SimdFunction of_memory(const char* name, Op, Numbers takes, Numbers gives) {
  return {
      .name = name,
      .a = takes,
      .b = Numbers::bytes,
      .c = Numbers::bytes,
      .result = gives,
      .apply = [](const std::byte* a, const std::byte* b, const std::byte*, std::byte* out) {
        Op{}(a, b, out);
      }
  };
}

using In = const std::byte*;
using Out = std::byte*;

constexpr SimdFunction kFunctions[] = {
    of_floats("zero_f32", [](F32, F32, F32) { return zero_f32(); }),
    of_floats("add", [](F32 a, F32 b, F32) { return add(a, b); }),
    of_floats("sub", [](F32 a, F32 b, F32) { return sub(a, b); }),
    of_floats("mul", [](F32 a, F32 b, F32) { return mul(a, b); }),
    of_floats("div", [](F32 a, F32 b, F32) { return div(a, b); }),
    of_floats("fma", [](F32 a, F32 b, F32 c) { return fma(a, b, c); }),
    of_floats("minimum", [](F32 a, F32 b, F32) { return minimum(a, b); }),
    of_floats("maximum", [](F32 a, F32 b, F32) { return maximum(a, b); }),
    of_floats("absolute", [](F32 a, F32, F32) { return absolute(a); }),
    of_floats("sum", [](F32 a, F32, F32) { return sum(a); }),
    of_floats(
        "largest", [](F32 a, F32, F32) { return largest(a); }, Numbers::ordered_f32
    ),
    of_floats("where_less", [](F32 a, F32 b, F32 c) { return where_less(a, b, b, c); }),
    of_floats(
        "to_i32", [](F32 a, F32, F32) { return to_i32(a); }, Numbers::near_i32
    ),
    of_floats("as_i32", [](F32 a, F32, F32) { return as_i32(a); }),
    of_integers("zero_i32", [](I32, I32) { return zero_i32(); }),
    of_integers("add integers", [](I32 a, I32 b) { return add(a, b); }),
    of_integers("sub integers", [](I32 a, I32 b) { return sub(a, b); }),
    of_integers("sum of integers", [](I32 a, I32) { return sum(a); }),
    of_integers("shift_left<1>", [](I32 a, I32) { return shift_left<1>(a); }),
    of_integers("shift_left<23>", [](I32 a, I32) { return shift_left<23>(a); }),
    of_integers("shift_right<1>", [](I32 a, I32) { return shift_right<1>(a); }),
    of_integers("shift_right<31>", [](I32 a, I32) { return shift_right<31>(a); }),
    of_integers(
        "to_f32", [](I32 a, I32) { return to_f32(a); }, Numbers::f32
    ),
    of_integers(
        "as_f32", [](I32 a, I32) { return as_f32(a); }, Numbers::f32
    ),
    of_bytes("bit_and", [](U8 a, U8 b) { return bit_and(a, b); }),
    of_bytes("bit_or", [](U8 a, U8 b) { return bit_or(a, b); }),
    of_bytes("shift_words_right<4>", [](U8 a, U8) { return shift_words_right<4>(a); }),
    of_bytes("shift_words_right<9>", [](U8 a, U8) { return shift_words_right<9>(a); }),
    of_bytes("shift_words_left<4>", [](U8 a, U8) { return shift_words_left<4>(a); }),
    of_bytes("shift_words_left<9>", [](U8 a, U8) { return shift_words_left<9>(a); }),
    of_bytes(
        "low_bf16", [](U8 a, U8) { return low_bf16(a); }, Numbers::f32
    ),
    of_bytes(
        "high_bf16", [](U8 a, U8) { return high_bf16(a); }, Numbers::f32
    ),
    of_products(
        "dot4", [](I32 acc, U8 w, I32 x) { return dot4(acc, w, x); }, Numbers::small_bytes
    ),
    of_products(
        "dot4_wide", [](I32 acc, U8 w, I32 x) { return dot4_wide(acc, w, x); }, Numbers::bytes
    ),
    of_memory(
        "splat", [](In a, In, Out out) { put(out, splat(*floats(a))); }, Numbers::f32, Numbers::f32
    ),
    of_memory(
        "splat an integer",
        [](In a, In, Out out) { put(out, splat(*integers(a))); },
        Numbers::i32,
        Numbers::i32
    ),
    of_memory(
        "splat_u8",
        [](In a, In, Out out) { put(out, splat_u8(static_cast<uint8_t>(*a))); },
        Numbers::bytes,
        Numbers::bytes
    ),
    of_memory(
        "splat_quad",
        [](In a, In, Out out) { put(out, splat_quad(signed_bytes(a))); },
        Numbers::bytes,
        Numbers::i32
    ),
    of_memory(
        "load_first",
        [](In a, In b, Out out) { put(out, load_first(floats(a), some_lanes(b))); },
        Numbers::f32,
        Numbers::f32
    ),
    of_memory(
        "store_first",
        [](In a, In b, Out out) {
          store_first(reinterpret_cast<float*>(out), load(floats(a)), some_lanes(b));
        },
        Numbers::f32,
        Numbers::f32
    ),
    of_memory(
        "store_bytes",
        [](In a, In, Out out) { store_bytes(reinterpret_cast<int8_t*>(out), load(integers(a))); },
        Numbers::i32,
        Numbers::bytes
    ),
    of_memory(
        "load_bytes",
        [](In a, In, Out out) { put(out, load_bytes(reinterpret_cast<const uint8_t*>(a))); },
        Numbers::bytes,
        Numbers::i32
    ),
    of_memory(
        "load_bf16",
        [](In a, In, Out out) { put(out, load_bf16(words(a))); },
        Numbers::words,
        Numbers::f32
    ),
    of_memory(
        "store_bf16",
        [](In a, In, Out out) { store_bf16(reinterpret_cast<uint16_t*>(out), load(floats(a))); },
        Numbers::f32,
        Numbers::words
    ),
    of_memory(
        "load_f16",
        [](In a, In, Out out) { put(out, load_f16(words(a))); },
        Numbers::words,
        Numbers::f32
    ),
};

}  // namespace

SimdFunctions simd_functions() {
  return {kFunctions, sizeof(kFunctions) / sizeof(kFunctions[0])};
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
