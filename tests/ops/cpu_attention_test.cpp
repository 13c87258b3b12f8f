#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ops/cpu/attend.h"
#include "ops/row_range.h"

namespace whimbrel::ops::cpu {
namespace {

float from_bf16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

/// Numbers that start some elements behind an aligned address.
template <typename T, int behind = 1>
class Unaligned {
 public:
  explicit Unaligned(size_t count = 0, T value = {}) : numbers_(count + behind, value) {}
  T* data() { return numbers_.data() + behind; }
  const T* data() const { return numbers_.data() + behind; }
  T& operator[](size_t i) { return numbers_[i + behind]; }
  const T& operator[](size_t i) const { return numbers_[i + behind]; }
  size_t size() const { return numbers_.size() - behind; }
  bool operator==(const Unaligned&) const = default;

 private:
  std::vector<T> numbers_;
};

using Floats = Unaligned<float>;

Floats random_floats(size_t count, float size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, size);
  Floats floats(count);
  for (size_t i = 0; i < count; ++i) {
    floats[i] = normal(random);
  }
  return floats;
}

struct Shape {
  int heads = 2;
  int kv_heads = 1;
  int head_dim = 64;
  int group_size = 0;
};

struct Rows {
  int rows = 1;
  int cached = 0;
  bool prefill = false;
};

/// Keys or values of a sequence, all rows filled with what a rightful reader never uses: NaN.
struct Cache {
  Unaligned<std::byte, 2> data;  // words have even addresses
  Unaligned<uint16_t> scales;
  Unaligned<uint16_t> offsets;

  Cache(const Shape& shape, int capacity)
      : data(
            static_cast<size_t>(shape.kv_heads * capacity * shape.head_dim) *
                (shape.group_size != 0 ? 1 : 2),
            std::byte{0xff}
        ),
        scales(groups(shape, capacity), 0xffff),
        offsets(groups(shape, capacity), 0xffff) {}

  static size_t groups(const Shape& shape, int capacity) {
    return shape.group_size == 0
               ? 0
               : static_cast<size_t>(
                     shape.kv_heads * capacity * (shape.head_dim / shape.group_size)
                 );
  }

  KVCache view() { return {data.data(), scales.data(), offsets.data()}; }

  double number(const Shape& shape, int capacity, int head, int row, int dim) const {
    const auto at = static_cast<size_t>((head * capacity + row) * shape.head_dim + dim);
    if (shape.group_size == 0) {
      uint16_t bits = 0;
      std::memcpy(&bits, data.data() + 2 * at, sizeof(bits));
      return from_bf16(bits);
    }
    const size_t group = at / static_cast<size_t>(shape.group_size);
    const auto code = static_cast<double>(data[at]);
    return from_bf16(scales[group]) * code + from_bf16(offsets[group]);
  }

  bool operator==(const Cache&) const = default;
};

/// A sequence with its inputs. Cached rows come from a call of their own.
struct Sequence {
  Rows rows;
  int capacity = 0;
  Floats q, k, v;  // of cached and new rows
  Floats cos, sin;
  Cache keys, values;

  Sequence(const Shape& shape, Rows r, float size, uint32_t seed)
      : rows(r),
        capacity(r.cached + r.rows + 3),
        q(random_floats(all() * static_cast<size_t>(shape.heads * shape.head_dim), size, seed)),
        k(random_floats(
            all() * static_cast<size_t>(shape.kv_heads * shape.head_dim), size, seed + 1
        )),
        v(random_floats(
            all() * static_cast<size_t>(shape.kv_heads * shape.head_dim), 1.0F, seed + 2
        )),
        cos(all() * static_cast<size_t>(shape.head_dim / 2)),
        sin(cos.size()),
        keys(shape, capacity),
        values(shape, capacity) {
    for (size_t i = 0; i < cos.size(); ++i) {
      const double angle = 0.37 * static_cast<double>(i % 1013);
      cos[i] = static_cast<float>(std::cos(angle));
      sin[i] = static_cast<float>(std::sin(angle));
    }
  }

  size_t all() const { return static_cast<size_t>(rows.cached + rows.rows); }
};

/// Norms, or none.
struct Norms {
  Floats q, k;
};

struct Setting {
  Isa isa = Isa::scalar;
  int threads = 1;
  const Norms* norms = nullptr;
};

/// Rows [first, first + count) of a sequence.
struct Piece {
  int first = 0;
  int count = 0;
};

/// q, k and v of all pieces, side by side in each row, as a fused projection would give.
Floats pieces_of_qkv(
    const Shape& shape, const std::vector<Sequence>& sequences, const std::vector<Piece>& pieces
) {
  const auto q_width = static_cast<size_t>(shape.heads * shape.head_dim);
  const auto kv_width = static_cast<size_t>(shape.kv_heads * shape.head_dim);
  size_t rows = 0;
  for (const Piece& piece : pieces) {
    rows += static_cast<size_t>(piece.count);
  }
  Floats qkv(rows * (q_width + 2 * kv_width));
  float* to = qkv.data();
  const auto append = [&to](const Floats& from, size_t row, size_t width) {
    std::memcpy(to, from.data() + row * width, width * sizeof(float));
    to += width;
  };
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto first = static_cast<size_t>(pieces[i].first);
    for (size_t row = first; row < first + static_cast<size_t>(pieces[i].count); ++row) {
      append(sequences[i].q, row, q_width);
      append(sequences[i].k, row, kv_width);
      append(sequences[i].v, row, kv_width);
    }
  }
  return qkv;
}

std::vector<AttendSequence> views_of(
    const Shape& shape, std::vector<Sequence>& sequences, const std::vector<Piece>& pieces
) {
  std::vector<AttendSequence> views;
  int row = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence& s = sequences[i];
    const size_t angles = static_cast<size_t>(pieces[i].first * (shape.head_dim / 2));
    views.push_back({
        .first_row = row,
        .rows = pieces[i].count,
        .cached = pieces[i].first,
        .capacity = s.capacity,
        .prefill = s.rows.prefill,
        .keys = s.keys.view(),
        .values = s.values.view(),
        .cos = s.cos.data() + angles,
        .sin = s.sin.data() + angles,
    });
    row += pieces[i].count;
  }
  return views;
}

/// Attends rows of all sequences at once -> [rows][heads * head_dim], sequence after sequence.
Floats attend_pieces(
    const Shape& shape,
    std::vector<Sequence>& sequences,
    const std::vector<Piece>& pieces,
    const Setting& setting
) {
  const auto q_width = static_cast<size_t>(shape.heads * shape.head_dim);
  const auto kv_width = static_cast<size_t>(shape.kv_heads * shape.head_dim);
  const size_t width = q_width + 2 * kv_width;
  const Floats qkv = pieces_of_qkv(shape, sequences, pieces);
  const std::vector<AttendSequence> views = views_of(shape, sequences, pieces);
  Floats out(qkv.size() / width * q_width, std::nanf(""));
  Attention a = {
      .heads = shape.heads,
      .kv_heads = shape.kv_heads,
      .head_dim = shape.head_dim,
      .group_size = shape.group_size,
      .q = qkv.data(),
      .k = qkv.data() + q_width,
      .v = qkv.data() + q_width + kv_width,
      .q_stride = width,
      .k_stride = width,
      .v_stride = width,
      .sequences = views,
      .out = out.data(),
      .out_stride = q_width,
  };
  if (setting.norms != nullptr) {
    a.q_norm = {setting.norms->q.data(), 1e-6F};
    a.k_norm = {setting.norms->k.data(), 1e-6F};
  }
  ThreadPool pool(setting.threads);
  AttendWorkspace workspace;
  attend(a, kernels_for(setting.isa), pool, workspace);
  return out;
}

std::vector<Sequence> make_sequences(
    const Shape& shape, const std::vector<Rows>& rows, float size = 1.0F
) {
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < rows.size(); ++i) {
    sequences.emplace_back(shape, rows[i], size, static_cast<uint32_t>(10 * i + 1));
  }
  return sequences;
}

/// Fills the caches, then computes the new rows.
Floats run(const Shape& shape, std::vector<Sequence>& sequences, const Setting& setting) {
  std::vector<Piece> cached;
  std::vector<Piece> fresh;
  for (const Sequence& s : sequences) {
    cached.push_back({0, s.rows.cached});
    fresh.push_back({s.rows.cached, s.rows.rows});
  }
  attend_pieces(shape, sequences, cached, setting);
  return attend_pieces(shape, sequences, fresh, setting);
}

/// A head of a row, normed and rotated, in double precision.
std::vector<double> turned(
    const Shape& shape, const Sequence& s, const float* x, int row, const Floats* norm
) {
  const auto dims = static_cast<size_t>(shape.head_dim);
  std::vector<double> y(x, x + dims);
  if (norm != nullptr) {
    double squares = 0;
    for (const double number : y) {
      squares += number * number;
    }
    for (size_t i = 0; i < dims; ++i) {
      y[i] *= static_cast<double>((*norm)[i]) / std::sqrt(squares / shape.head_dim + 1e-6);
    }
  }
  for (size_t i = 0; i < dims / 2; ++i) {
    const double c = s.cos[static_cast<size_t>(row) * dims / 2 + i];
    const double sn = s.sin[static_cast<size_t>(row) * dims / 2 + i];
    const double low = y[i];
    const double high = y[i + dims / 2];
    y[i] = low * c - high * sn;
    y[i + dims / 2] = high * c + low * sn;
  }
  return y;
}

/// Attention of one query to `count` keys and values; number(kind, key, dim).
template <typename Number>
std::vector<double> plain_attention(const std::vector<double>& q, int count, const Number& number) {
  std::vector<double> scores;
  for (int key = 0; key < count; ++key) {
    double score = 0;
    for (size_t i = 0; i < q.size(); ++i) {
      score += q[i] * number(0, key, static_cast<int>(i));
    }
    scores.push_back(score / std::sqrt(static_cast<double>(q.size())));
  }
  const double top = *std::max_element(scores.begin(), scores.end());
  std::vector<double> out(q.size(), 0.0);
  double weight = 0;
  for (int key = 0; key < count; ++key) {
    const double p = std::exp(scores[static_cast<size_t>(key)] - top);
    weight += p;
    for (size_t i = 0; i < q.size(); ++i) {
      out[i] += p * number(1, key, static_cast<int>(i));
    }
  }
  for (double& x : out) {
    x /= weight;
  }
  return out;
}

/// Values are about 1. On tiles a prompt's rows are rounded to bfloat16, an answer's are split into
/// two of them.
double tolerance(Isa isa, bool prefill) {
  if (isa == Isa::amx) {
    return prefill ? 2e-2 : 5e-5;
  }
  return 3e-6;
}

/// Compares `out` with plain loops over what stands in the caches.
void expect_attention(
    const Shape& shape,
    const std::vector<Sequence>& sequences,
    const Floats& out,
    double allowed,
    const Norms* norms = nullptr
) {
  const auto width = static_cast<size_t>(shape.heads * shape.head_dim);
  const int group = shape.heads / shape.kv_heads;
  size_t row = 0;
  double worst = 0;
  for (const Sequence& s : sequences) {
    for (int r = s.rows.cached; r < s.rows.cached + s.rows.rows; ++r, ++row) {
      for (int head = 0; head < shape.heads; ++head) {
        const float* x = s.q.data() + static_cast<size_t>(r) * width + head * shape.head_dim;
        const auto q = turned(shape, s, x, r, norms != nullptr ? &norms->q : nullptr);
        const auto expected = plain_attention(q, r + 1, [&](int kind, int key, int dim) {
          const Cache& cache = kind == 0 ? s.keys : s.values;
          return cache.number(shape, s.capacity, head / group, key, dim);
        });
        for (size_t i = 0; i < q.size(); ++i) {
          const double got = out[row * width + static_cast<size_t>(head * shape.head_dim) + i];
          const double difference = std::abs(got - expected[i]);
          worst = difference <= worst ? worst : difference;  // NaN is worst
        }
      }
    }
  }
  EXPECT_LE(worst, allowed);
}

/// Compares the caches with what went into them.
void expect_caches(
    const Shape& shape, const std::vector<Sequence>& sequences, const Norms* norms = nullptr
) {
  double worst = 0;
  for (const Sequence& s : sequences) {
    for (int r = 0; r < static_cast<int>(s.all()); ++r) {
      for (int head = 0; head < shape.kv_heads; ++head) {
        const auto at = static_cast<size_t>((r * shape.kv_heads + head) * shape.head_dim);
        const auto k = turned(shape, s, s.k.data() + at, r, norms != nullptr ? &norms->k : nullptr);
        for (int i = 0; i < shape.head_dim; ++i) {
          const double key =
              s.keys.number(shape, s.capacity, head, r, i) - k[static_cast<size_t>(i)];
          const double value =
              s.values.number(shape, s.capacity, head, r, i) - s.v[at + static_cast<size_t>(i)];
          const double size = shape.group_size != 0 ? 4.0 : std::abs(k[static_cast<size_t>(i)]);
          worst = std::max({worst, std::abs(key) / (size + 1e-3), std::abs(value) / 4.0});
        }
      }
    }
  }
  // Half a step of bfloat16, or of 255 codes over the range of 64 numbers.
  EXPECT_LE(worst, shape.group_size != 0 ? 0.006 : 0.004);
}

class CpuAttention : public testing::TestWithParam<Isa> {
 protected:
  /// Of an answer, and of a prompt.
  void check(const Shape& shape, const Rows& rows) {
    for (const bool prefill : {false, true}) {
      check(shape, std::vector{Rows{rows.rows, rows.cached, prefill}}, 2);
    }
  }

  void check(const Shape& shape, const std::vector<Rows>& rows, int threads) {
    SCOPED_TRACE(
        "heads " + std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + " x " +
        std::to_string(shape.head_dim) + ", rows " + std::to_string(rows.front().rows) +
        " behind " + std::to_string(rows.front().cached)
    );
    std::vector<Sequence> sequences = make_sequences(shape, rows);
    const bool prefill = std::ranges::any_of(rows, &Rows::prefill);
    const Floats out = run(shape, sequences, {GetParam(), threads});
    expect_attention(shape, sequences, out, tolerance(GetParam(), prefill));
    expect_caches(shape, sequences);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Isas, CpuAttention, testing::ValuesIn(available_isas()), [](const auto& isa) {
      return std::string(isa_name(isa.param));
    }
);

TEST_P(CpuAttention, one_row_at_every_length) {
  for (const int keys : {1, 2, 15, 16, 17, 31, 33, 63, 255, 256, 257, 1000}) {
    check({.heads = 4, .kv_heads = 2, .head_dim = 64}, {1, keys - 1});
  }
}

TEST_P(CpuAttention, one_row_at_every_head_size) {
  for (const int head_dim : {8, 16, 24, 64, 72, 80, 96, 128, 136, 256}) {
    check({.heads = 4, .kv_heads = 1, .head_dim = head_dim}, {1, 300});
  }
}

TEST_P(CpuAttention, one_row_of_every_group) {
  for (const int group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) {
    check({.heads = 2 * group, .kv_heads = 2, .head_dim = 128}, {1, 276});
  }
}

TEST_P(CpuAttention, rows_see_each_other_causally) {
  for (const int rows : {2, 3, 8}) {
    for (const int cached : {0, 1, 250, 255, 256}) {
      check({.heads = 6, .kv_heads = 1, .head_dim = 72}, {rows, cached});
    }
  }
}

TEST_P(CpuAttention, many_rows_at_every_length) {
  for (const int rows : {9, 15, 16, 17, 63, 64, 65, 255}) {
    for (const int cached : {0, 1, 63, 100}) {
      check({.heads = 2, .kv_heads = 1, .head_dim = 64}, {rows, cached});
    }
  }
}

TEST_P(CpuAttention, many_rows_at_every_head_size) {
  for (const int head_dim : {8, 16, 24, 64, 72, 80, 96, 128, 136, 256}) {
    check({.heads = 3, .kv_heads = 1, .head_dim = head_dim}, {37, 70});
  }
}

TEST_P(CpuAttention, many_rows_of_every_group) {
  for (const int group : {1, 2, 4, 6, 7, 8, 12, 160}) {
    check({.heads = group, .kv_heads = 1, .head_dim = 80}, {21, 50});
  }
}

TEST_P(CpuAttention, caches_of_codes) {
  for (const int group_size : {32, 64, 128}) {
    check({.heads = 8, .kv_heads = 2, .head_dim = 128, .group_size = group_size}, {1, 299});
    check({.heads = 8, .kv_heads = 2, .head_dim = 128, .group_size = group_size}, {40, 33});
  }
  check({.heads = 4, .kv_heads = 2, .head_dim = 96, .group_size = 32}, {1, 50});
}

TEST_P(CpuAttention, sequences_of_all_lengths_at_once) {
  for (const int threads : {1, 2, 3, 4}) {
    check(
        {.heads = 8, .kv_heads = 2, .head_dim = 64},
        {{1, 700}, {30, 20, true}, {1, 0}, {5, 254}, {9, 0, true}, {3, 10, true}, {1, 40}},
        threads
    );
  }
}

TEST_P(CpuAttention, heads_are_normed_before_they_turn) {
  const Shape shape = {.heads = 4, .kv_heads = 2, .head_dim = 80};
  const Norms norms = {random_floats(80, 1.0F, 7), random_floats(80, 1.0F, 8)};
  for (const bool prefill : {false, true}) {
    std::vector<Sequence> sequences = make_sequences(shape, {{20, 40, prefill}});
    const Floats out = run(shape, sequences, {GetParam(), 2, &norms});
    expect_attention(shape, sequences, out, 3 * tolerance(GetParam(), prefill), &norms);
    expect_caches(shape, sequences, &norms);
  }
}

TEST_P(CpuAttention, scores_far_beyond_what_exp_can_hold) {
  const Shape shape = {.heads = 4, .kv_heads = 2, .head_dim = 64};
  for (const bool prefill : {false, true}) {
    std::vector<Sequence> sequences = make_sequences(shape, {{20, 300, prefill}}, 30.0F);
    const Floats out = run(shape, sequences, {GetParam(), 2});
    const double allowed = GetParam() != Isa::amx ? 3e-3 : prefill ? 4.0 : 0.1;
    expect_attention(shape, sequences, out, allowed);
  }
}

/// Rows of a call as one array of bits.
std::vector<float> part_of(const Floats& x, size_t first, size_t count) {
  return {x.data() + first, x.data() + first + count};
}

TEST_P(CpuAttention, a_row_among_others_has_the_bits_of_a_row_alone) {
  const Shape shape = {.heads = 8, .kv_heads = 2, .head_dim = 80};
  const std::vector<Rows> rows = {{1, 511}, {8, 290}, {30, 20, true}, {1, 3}, {5, 7, true}};
  std::vector<Sequence> together = make_sequences(shape, rows);
  const Floats all = run(shape, together, {GetParam(), 3});
  const auto width = static_cast<size_t>(shape.heads * shape.head_dim);
  size_t row = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<Sequence> alone = {make_sequences(shape, rows)[i]};
    const Floats one = run(shape, alone, {GetParam(), 1});
    EXPECT_EQ(part_of(one, 0, one.size()), part_of(all, row * width, one.size()));
    EXPECT_TRUE(alone[0].keys == together[i].keys && alone[0].values == together[i].values);
    row += static_cast<size_t>(rows[i].rows);
  }
}

TEST_P(CpuAttention, rows_of_an_answer_have_the_bits_of_one_by_one) {
  const Shape shape = {.heads = 6, .kv_heads = 2, .head_dim = 64};
  std::vector<Sequence> at_once = make_sequences(shape, {{12, 251}});
  const Floats twelve = run(shape, at_once, {GetParam(), 2});
  std::vector<Sequence> in_turn = make_sequences(shape, {{12, 251}});
  attend_pieces(shape, in_turn, {{0, 251}}, {GetParam(), 2});
  const auto width = static_cast<size_t>(shape.heads * shape.head_dim);
  for (int row = 0; row < 12; ++row) {
    const Floats one = attend_pieces(shape, in_turn, {{251 + row, 1}}, {GetParam(), 2});
    EXPECT_EQ(part_of(one, 0, width), part_of(twelve, static_cast<size_t>(row) * width, width));
  }
}

TEST_P(CpuAttention, rows_of_a_prompt_have_the_same_bits_in_other_chunks) {
  const Shape shape = {.heads = 8, .kv_heads = 1, .head_dim = 72};
  std::vector<Sequence> at_once = make_sequences(shape, {{150, 0, true}});
  const Floats all = run(shape, at_once, {GetParam(), 2});
  std::vector<Sequence> in_turn = make_sequences(shape, {{150, 0, true}});
  const auto width = static_cast<size_t>(shape.heads * shape.head_dim);
  for (const Piece& piece : {Piece{0, 67}, Piece{67, 1}, Piece{68, 8}, Piece{76, 74}}) {
    const Floats part = attend_pieces(shape, in_turn, {piece}, {GetParam(), 2});
    EXPECT_EQ(
        part_of(part, 0, part.size()),
        part_of(all, static_cast<size_t>(piece.first) * width, part.size())
    );
  }
}

TEST_P(CpuAttention, nothing_beyond_a_sequence_is_touched) {
  const Shape shape = {.heads = 4, .kv_heads = 2, .head_dim = 72};
  for (const bool prefill : {false, true}) {
    constexpr int rows = 20;
    std::vector<Sequence> sequences = make_sequences(shape, {{rows, 40, prefill}});
    run(shape, sequences, {GetParam(), 2});
    for (const Cache* cache : {&sequences[0].keys, &sequences[0].values}) {
      for (int head = 0; head < shape.kv_heads; ++head) {
        for (int row = rows + 40; row < sequences[0].capacity; ++row) {
          EXPECT_TRUE(std::isnan(cache->number(shape, sequences[0].capacity, head, row, 0)));
        }
      }
    }
  }
}

TEST_P(CpuAttention, not_a_number_is_not_lost) {
  const Shape shape = {.heads = 2, .kv_heads = 1, .head_dim = 64};
  for (const bool prefill : {false, true}) {
    std::vector<Sequence> sequences = make_sequences(shape, {{20, 40, prefill}});
    sequences[0].q[static_cast<size_t>(40 * 128)] = std::nanf("");
    const Floats out = run(shape, sequences, {GetParam(), 2});
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_FALSE(std::isnan(out[64]));
  }
}

/// Rows of a tower, and the segments that they attend in.
struct Segments {
  Segments(int of_heads, int of_dims, const std::vector<int>& at)
      : heads(of_heads),
        head_dim(of_dims),
        borders(at),
        qkv(random_floats(static_cast<size_t>(at.back() * 3 * of_heads * of_dims), 1.0F, 5)),
        angles({.heads = 1, .kv_heads = 1, .head_dim = of_dims}, {at.back(), 0}, 1.0F, 1) {}

  /// What the queries [first, end) see.
  Floats attend(const Setting& setting, int first, int end) const {
    Floats out(static_cast<size_t>((end - first) * heads * head_dim), std::nanf(""));
    ThreadPool pool(setting.threads);
    AttendWorkspace workspace;
    const SegmentAttention a = {
        .qkv = qkv.data(),
        .heads = heads,
        .head_dim = head_dim,
        .cos = angles.cos.data(),
        .sin = angles.sin.data(),
        .cu_seqlens = borders,
        .first_query = first,
        .queries = end - first,
        .out = out.data(),
    };
    attend_segments(a, kernels_for(setting.isa), pool, workspace);
    return out;
  }

  int heads;
  int head_dim;
  std::vector<int> borders;
  Floats qkv;
  Sequence angles;
};

/// Attention by segments against plain loops.
void check_segments(
    const Setting& setting, int heads, int head_dim, const std::vector<int>& borders
) {
  const Segments segments(heads, head_dim, borders);
  const Floats& qkv = segments.qkv;
  const Sequence& angles = segments.angles;
  const auto width = static_cast<size_t>(heads * head_dim);
  const Floats out = segments.attend(setting, 0, borders.back());
  double worst = 0;
  for (size_t segment = 0; segment + 1 < borders.size(); ++segment) {
    const int first = borders[segment];
    const int count = borders[segment + 1] - first;
    for (int head = 0; head < heads; ++head) {
      const auto row_of = [&](int kind, int row) {
        return qkv.data() + static_cast<size_t>(row) * 3 * width +
               static_cast<size_t>((kind * heads + head) * head_dim);
      };
      std::vector<std::vector<double>> keys;
      for (int key = 0; key < count; ++key) {
        keys.push_back(
            turned({.head_dim = head_dim}, angles, row_of(1, first + key), first + key, nullptr)
        );
      }
      for (int row = first; row < first + count; ++row) {
        const auto q = turned({.head_dim = head_dim}, angles, row_of(0, row), row, nullptr);
        const auto expected = plain_attention(q, count, [&](int kind, int key, int dim) -> double {
          return kind == 0 ? keys[static_cast<size_t>(key)][static_cast<size_t>(dim)]
                           : static_cast<double>(row_of(2, first + key)[dim]);
        });
        for (int i = 0; i < head_dim; ++i) {
          const double got =
              out[static_cast<size_t>(row) * width + static_cast<size_t>(head * head_dim + i)];
          const double difference = std::abs(got - expected[static_cast<size_t>(i)]);
          worst = difference <= worst ? worst : difference;
        }
      }
    }
  }
  EXPECT_LE(worst, tolerance(setting.isa, borders.back())) << heads << " heads of " << head_dim;
}

TEST_P(CpuAttention, segments_see_themselves_only) {
  for (const int head_dim : {8, 64, 72, 80, 128}) {
    check_segments({GetParam(), 2}, 2, head_dim, {0, 1, 17, 81, 81, 346});
  }
}

TEST_P(CpuAttention, segments_on_any_number_of_threads) {
  for (const int threads : {1, 2, 3, 4}) {
    check_segments({GetParam(), threads}, 3, 80, {0, 64, 128, 150});
  }
}

TEST_P(CpuAttention, tiles_end_where_queries_are_cut) {
  EXPECT_EQ(kQueryStep % kernels_for(GetParam()).tile_queries, 0);
}

TEST_P(CpuAttention, queries_in_pieces_are_those_of_the_whole) {
  const Segments segments(2, 64, {0, 1100, 1112, 1120, 1300});
  const Setting setting = {GetParam(), 2};
  const Floats whole = segments.attend(setting, 0, 1300);
  // Borders of tiles (512 rows behind a segment's first), of segments, and a piece over three.
  const std::vector<int> cuts = {0, 512, 1024, 1100, 1112, 1300};
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Floats piece = segments.attend(setting, cuts[i], cuts[i + 1]);
    const float* expected = whole.data() + static_cast<size_t>(cuts[i] * 2 * 64);
    EXPECT_EQ(std::memcmp(piece.data(), expected, piece.size() * sizeof(float)), 0) << cuts[i];
  }
}

TEST(CpuAttend, memory_is_kept_between_calls) {
  AttendWorkspace workspace;
  const float* before = workspace.shared(0, 1000);
  EXPECT_EQ(workspace.shared(0, 900), before);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(before) % 64, 0U);
}

}  // namespace
}  // namespace whimbrel::ops::cpu
