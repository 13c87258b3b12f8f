#include "weights/safetensors_json.h"

#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "weights/quote.h"
#include "weights/strict_json.h"

namespace whimbrel {

namespace {

constexpr size_t kMaxDimensions = 8;
constexpr uint64_t kMaxDimension = std::numeric_limits<int32_t>::max();  // of an MLX array

/// Reads the header's JSON: {"<name>": {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}.
class HeaderReader : public StrictJsonReader {
 public:
  using StrictJsonReader::StrictJsonReader;

  std::vector<TensorInfo> take_tensors() { return std::move(tensors_); }

  bool start_object(size_t) override {
    switch (next_) {
      case Next::header:
        return go(Next::name);
      case Next::tensor:
        return go(Next::field);
      case Next::metadata:
        return go(Next::metadata_key);
      default:
        refuse("an object");
    }
  }

  bool key(string_t& key) override {
    switch (next_) {
      case Next::name:
        return start_entry(key);
      case Next::field:
        return start_field(key);
      case Next::metadata_key:
        return start_metadata(key);
      default:
        refuse("a key");
    }
  }

  bool end_object() override {
    switch (next_) {
      case Next::name:
        return go(Next::end);
      case Next::field:
        finish_tensor();
        return go(Next::name);
      case Next::metadata_key:
        return go(Next::name);
      default:
        refuse("the end of an object");
    }
  }

  bool string(string_t& text) override {
    switch (next_) {
      case Next::dtype:
        tensor_.dtype = known_dtype(text);
        return go(Next::field);
      case Next::metadata_value:
        return go(Next::metadata_key);
      default:
        refuse(fmt::format("the string {}", quote(text)));
    }
  }

  // MLX writes null where there is no metadata.
  bool null() override {
    return next_ == Next::metadata ? go(Next::name) : StrictJsonReader::null();
  }

  bool start_array(size_t) override {
    switch (next_) {
      case Next::shape:
        tensor_.shape.clear();
        return go(Next::dimension);
      case Next::offsets:
        offsets_.clear();
        return go(Next::offset);
      default:
        refuse("a list");
    }
  }

  bool number_unsigned(number_unsigned_t number) override {
    switch (next_) {
      case Next::dimension:
        return add_dimension(number);
      case Next::offset:
        if (offsets_.size() == 2) {
          refuse("a third number");
        }
        offsets_.push_back(number);
        return true;
      default:
        refuse(fmt::format("the number {}", number));
    }
  }

  bool number_integer(number_integer_t number) override {
    refuse(fmt::format("the negative number {}", number));
  }

  bool end_array() override {
    switch (next_) {
      case Next::dimension:
        return go(Next::field);
      case Next::offset:
        if (offsets_.size() != 2) {
          refuse(fmt::format("a list of {}", offsets_.size()));
        }
        return go(Next::field);
      default:
        refuse("the end of a list");
    }
  }

 protected:
  std::string complaint(std::string_view found) const override {
    const std::string place =
        tensor_.name.empty() ? "" : fmt::format("tensor {}: ", quote(tensor_.name));
    return fmt::format("{}got {}, expected {}", place, found, expected());
  }

 private:
  /// What the format allows next.
  enum class Next {
    header,
    name,
    tensor,
    field,
    dtype,
    shape,
    dimension,
    offsets,
    offset,
    metadata,
    metadata_key,
    metadata_value,
    end,
  };

  bool go(Next next) {
    next_ = next;
    return true;
  }

  std::string expected() const {
    switch (next_) {
      case Next::header:
        return "a JSON object as header";
      case Next::tensor:
        return "an object with dtype, shape and data_offsets";
      case Next::field:
        return "dtype, shape and data_offsets, each once, and nothing else";
      case Next::dtype:
        return fmt::format("a dtype of {}", known_dtypes());
      case Next::shape:
        return "a list as shape";
      case Next::dimension:
        return fmt::format(
            "a shape of at most {} whole numbers from 0 to {}", kMaxDimensions, kMaxDimension
        );
      case Next::offsets:
      case Next::offset:
        return "data_offsets as a list of two whole numbers";
      case Next::metadata:
      case Next::metadata_key:
      case Next::metadata_value:
        return "__metadata__ as an object of strings or null";
      default:
        return "tensor names";
    }
  }

  bool start_entry(const std::string& name) {
    tensor_ = TensorInfo{};
    refuse_repeated(names_, name);
    if (name == "__metadata__") {
      return go(Next::metadata);
    }
    if (tensors_.size() == kMaxSafetensorsTensors) {
      throw Error(
          Fault::model,
          where(),
          "got over {0} tensors, expected at most {0} in one file",
          kMaxSafetensorsTensors
      );
    }
    tensor_.name = name;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    return go(Next::tensor);
  }

  bool start_metadata(const std::string& key) {
    if (metadata_keys_.size() == kMaxSafetensorsTensors) {
      refuse(fmt::format("over {} keys", kMaxSafetensorsTensors));
    }
    refuse_repeated(metadata_keys_, key);
    return go(Next::metadata_value);
  }

  bool start_field(const std::string& key) {
    if (key == "dtype" && !std::exchange(has_dtype_, true)) {
      return go(Next::dtype);
    }
    if (key == "shape" && !std::exchange(has_shape_, true)) {
      return go(Next::shape);
    }
    if (key == "data_offsets" && !std::exchange(has_offsets_, true)) {
      return go(Next::offsets);
    }
    refuse(fmt::format("the key {}", quote(key)));
  }

  void finish_tensor() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      refuse("an entry without one of them");
    }
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    tensors_.push_back(std::move(tensor_));
    tensor_ = TensorInfo{};
  }

  bool add_dimension(uint64_t dimension) {
    if (tensor_.shape.size() == kMaxDimensions) {
      refuse("one more dimension");
    }
    if (dimension > kMaxDimension) {
      refuse(fmt::format("the dimension {}", dimension));
    }
    tensor_.shape.push_back(static_cast<int64_t>(dimension));
    return true;
  }

  StoredDtype known_dtype(std::string_view name) const {
    const std::optional<StoredDtype> dtype = find_dtype(name);
    if (!dtype) {
      refuse(fmt::format("dtype {}", quote(name)));
    }
    return *dtype;
  }

  void refuse_repeated(std::unordered_set<std::string>& seen, const std::string& name) {
    if (!seen.insert(name).second) {
      throw Error(
          Fault::model, where(), "got the name {} twice, expected each name once", quote(name)
      );
    }
  }

  Next next_ = Next::header;
  TensorInfo tensor_{};  // the one being read; no name: none
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::vector<uint64_t> offsets_;
  std::vector<TensorInfo> tensors_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
};

}  // namespace

std::vector<TensorInfo> read_safetensors_json(std::string_view json, std::string_view where) {
  HeaderReader reader(where);
  reader.read(json);
  return reader.take_tensors();
}

}  // namespace whimbrel
