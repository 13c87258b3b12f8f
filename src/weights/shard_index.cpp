#include "weights/shard_index.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "weights/quote.h"
#include "weights/safetensors.h"
#include "weights/strict_json.h"

namespace whimbrel {

namespace {

/// A plain file name can't leave its folder, whatever system reads it.
bool is_plain_safetensors_name(std::string_view file) {
  const bool has_control = std::any_of(file.begin(), file.end(), [](unsigned char character) {
    return character < ' ';
  });
  return !has_control && file.find_first_of("/\\:") == std::string_view::npos &&
         file.find("..") == std::string_view::npos && file.ends_with(".safetensors");
}

/// Reads {"metadata": anything, "weight_map": {"<tensor>": "<file>"}}.
class IndexReader : public StrictJsonReader {
 public:
  using StrictJsonReader::StrictJsonReader;

  std::vector<ShardIndexEntry> take_entries() {
    if (!has_map_) {
      throw Error(Fault::model, where(), "got no weight_map, expected one; get the file again");
    }
    return std::move(entries_);
  }

  bool null() override { return skip("null"); }
  bool boolean(bool) override { return skip("true or false"); }
  bool number_integer(number_integer_t) override { return skip("a number"); }
  bool number_unsigned(number_unsigned_t) override { return skip("a number"); }
  bool number_float(number_float_t, const string_t&) override { return skip("a number"); }
  bool start_array(size_t) override { return skip_start("a list"); }
  bool end_array() override { return skip_end("the end of a list"); }

  bool string(string_t& text) override {
    if (next_ != Next::file) {
      return skip("a string");
    }
    add_file(text);
    next_ = Next::tensor;
    return true;
  }

  bool start_object(size_t) override {
    if (next_ == Next::index) {
      next_ = Next::section;
      return true;
    }
    if (next_ == Next::map) {
      next_ = Next::tensor;
      return true;
    }
    return skip_start("an object");
  }

  bool key(string_t& key) override {
    if (next_ == Next::section) {
      return start_section(key);
    }
    if (next_ == Next::tensor) {
      return start_tensor(key);
    }
    return skip("a key");
  }

  bool end_object() override {
    if (next_ == Next::tensor) {
      next_ = Next::section;
      return true;
    }
    return next_ == Next::section || skip_end("the end of an object");
  }

 protected:
  std::string complaint(std::string_view found) const override {
    return fmt::format(
        "got {}, expected an object whose weight_map names the file of each tensor", found
    );
  }

 private:
  /// What the format allows next.
  enum class Next { index, section, map, tensor, file, skipped };

  bool start_section(const std::string& name) {
    if (name != "weight_map") {
      next_ = Next::skipped;
      return true;
    }
    if (std::exchange(has_map_, true)) {
      refuse("two of them");
    }
    next_ = Next::map;
    return true;
  }

  bool start_tensor(const std::string& name) {
    if (entries_.size() == kMaxSafetensorsTensors) {
      refuse(fmt::format("over {} tensors", kMaxSafetensorsTensors));
    }
    if (!tensors_.insert(name).second) {
      refuse(fmt::format("the tensor {} twice", quote(name)));
    }
    entries_.push_back({name, ""});
    next_ = Next::file;
    return true;
  }

  void add_file(const std::string& file) {
    if (!is_plain_safetensors_name(file)) {
      throw Error(
          Fault::model,
          where(),
          "tensor {}: got the file {}, expected the name of a .safetensors file in the same folder",
          quote(entries_.back().tensor),
          quote(file)
      );
    }
    entries_.back().file = file;
  }

  bool skip(std::string_view found) {
    if (next_ != Next::skipped) {
      refuse(found);
    }
    if (skipped_depth_ == 0) {
      next_ = Next::section;
    }
    return true;
  }

  bool skip_start(std::string_view found) {
    if (next_ != Next::skipped) {
      refuse(found);
    }
    ++skipped_depth_;
    return true;
  }

  bool skip_end(std::string_view found) {
    if (next_ == Next::skipped) {
      --skipped_depth_;
    }
    return skip(found);
  }

  Next next_ = Next::index;
  int64_t skipped_depth_ = 0;
  bool has_map_ = false;
  std::vector<ShardIndexEntry> entries_;
  std::unordered_set<std::string> tensors_;
};

}  // namespace

std::vector<ShardIndexEntry> parse_shard_index(std::string_view json, std::string_view where) {
  IndexReader reader(where);
  reader.read(json);
  return reader.take_entries();
}

}  // namespace whimbrel
