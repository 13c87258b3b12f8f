#include "weights/random_weights.h"

#include <mlx/allocator.h>
#include <mlx/primitives.h>
#include <mlx/stream.h>
#include <mlx/utils.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>

namespace whimbrel {

namespace mx = mlx::core;

namespace {

/// The i-th draw of a stream (splitmix64; Steele, Lea, Flood, OOPSLA 2014): no state, so that
/// threads can begin anywhere.
uint64_t draw(uint64_t seed, uint64_t i) {
  uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Runs `part(begin, end)` on all processors over [0, count).
void in_parallel(size_t count, const std::function<void(size_t, size_t)>& part) {
  constexpr size_t kLeast = 1 << 16;
  const size_t most = std::max(1U, std::thread::hardware_concurrency());
  const size_t threads = std::clamp(count / kLeast, size_t{1}, most);
  std::vector<std::jthread> pool;
  for (size_t i = 1; i < threads; ++i) {
    pool.emplace_back(part, count * i / threads, count * (i + 1) / threads);
  }
  part(0, count / threads);
}

void fill_bits(uint64_t seed, std::span<uint32_t> words) {
  in_parallel((words.size() + 1) / 2, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint64_t drawn = draw(seed, i);
      words[2 * i] = static_cast<uint32_t>(drawn);
      if (2 * i + 1 < words.size()) {
        words[2 * i + 1] = static_cast<uint32_t>(drawn >> 32);
      }
    }
  });
}

/// Values at 4,096 steps from low to high, four of them chosen by each draw.
template <typename T>
void fill_values(uint64_t seed, double low, double high, std::span<T> values) {
  constexpr size_t kSteps = 4096;
  std::array<T, kSteps> steps;
  for (size_t i = 0; i < kSteps; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / kSteps;
    steps[i] = static_cast<T>(static_cast<float>(low + (high - low) * share));
  }
  in_parallel((values.size() + 3) / 4, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint64_t drawn = draw(seed, i);
      const size_t lanes = std::min<size_t>(4, values.size() - 4 * i);
      for (size_t lane = 0; lane < lanes; ++lane) {
        values[4 * i + lane] = steps[(drawn >> (16 * lane)) % kSteps];
      }
    }
  });
}

template <typename T>
std::span<T> numbers(mx::array& array) {
  return {array.data<T>(), array.size()};
}

class RandomFill : public mx::Primitive {
 public:
  RandomFill(mx::Stream stream, const RandomTensor& tensor)
      : Primitive(stream), seed_(tensor.seed), low_(tensor.low), high_(tensor.high) {}

  const char* name() const override { return "RandomFill"; }

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    mx::array& out = outputs.front();
    out.set_data(mx::allocator::malloc(out.nbytes()));
    switch (out.dtype().val()) {
      case mx::Dtype::Val::uint32:
        return fill_bits(seed_, numbers<uint32_t>(out));
      case mx::Dtype::Val::bfloat16:
        return fill_values(seed_, low_, high_, numbers<mx::bfloat16_t>(out));
      case mx::Dtype::Val::float16:
        return fill_values(seed_, low_, high_, numbers<mx::float16_t>(out));
      default:
        return fill_values(seed_, low_, high_, numbers<float>(out));
    }
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("[RandomFill] runs on the CPU's stream only");
  }

 private:
  uint64_t seed_;
  double low_;
  double high_;
};

mx::Dtype as_mlx(StoredDtype dtype) {
  switch (dtype) {
    case StoredDtype::bf16:
      return mx::bfloat16;
    case StoredDtype::f16:
      return mx::float16;
    case StoredDtype::f32:
      return mx::float32;
    case StoredDtype::u32:
      return mx::uint32;
    default:
      throw std::logic_error("[random_array] got a dtype that isn't drawn");
  }
}

}  // namespace

TensorInfo tensor_info(const RandomTensor& tensor) {
  const uint64_t bytes = std::accumulate(
      tensor.shape.begin(), tensor.shape.end(), dtype_bytes(tensor.dtype), std::multiplies<>()
  );
  return {
      .name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .begin = 0, .end = bytes
  };
}

mx::array random_array(const RandomTensor& tensor) {
  return mx::array(
      mx::Shape(tensor.shape.begin(), tensor.shape.end()),
      as_mlx(tensor.dtype),
      std::make_shared<RandomFill>(mx::default_stream(mx::Device::cpu), tensor),
      {}
  );
}

}  // namespace whimbrel
