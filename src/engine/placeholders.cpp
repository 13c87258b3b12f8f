#include "engine/placeholders.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace whimbrel {

namespace {

std::string counted(std::ptrdiff_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// `name` is "picture" or "video", `flag` the one that gives another.
void require_one_each(
    const std::vector<int32_t>& ids,
    int32_t id,
    const std::vector<MediaInput>& media,
    MediaKind kind,
    std::string_view name,
    std::string_view flag
) {
  const auto placeholders = std::ranges::count(ids, id);
  const auto given = std::ranges::count(media, kind, &MediaInput::kind);
  if (placeholders != given) {
    throw Error(
        Fault::input,
        "prompt",
        "got {} for {}, expected one each; {}",
        counted(placeholders, fmt::format("{} placeholder", name)),
        counted(given, name),
        placeholders > given
            ? fmt::format("give the missing {} with {}", name, flag)
            : "a raw prompt has to spell each placeholder, and a chat template has to write it"
    );
  }
}

/// The special tokens around a video, spelled out.
struct VideoMarks {
  std::string start;
  std::string pad;
  std::string end;
};

std::string spelling(const Tokenizer& tokenizer, int32_t id) {
  const std::optional<std::string> token = tokenizer.id_to_token(id);
  if (!token) {
    throw Error(
        Fault::model, "tokenizer.json", "got no token {}, expected the one config.json names", id
    );
  }
  return *token;
}

std::string timed_placeholders(const std::vector<double>& seconds, const VideoMarks& marks) {
  std::string text;
  for (const double second : seconds) {
    text += fmt::format("<{:.1f} seconds>{}{}{}", second, marks.start, marks.pad, marks.end);
  }
  return text;
}

/// Gives the media of one kind, in order.
class MediaQueue {
 public:
  MediaQueue(std::vector<CutMedium>& media, MediaKind kind) : media_(media), kind_(kind) {}

  CutMedium& next() {
    while (media_[next_].kind != kind_) {
      ++next_;
    }
    return media_[next_++];
  }

 private:
  std::vector<CutMedium>& media_;
  MediaKind kind_;
  size_t next_ = 0;
};

/// A prompt that grows by text, and by media as runs of their placeholder.
class PromptBuilder {
 public:
  explicit PromptBuilder(const MediaRules& rules) : rules_(rules) {}

  void append_text(int32_t id) { prompt_.ids.push_back(id); }

  /// Begins a picture or video, whose tokens follow by append_run.
  void begin_medium(CutMedium& medium) {
    const bool in_words = !medium.seconds.empty();
    runs_left_ = in_words ? medium.patches.grid_thw[0] : 1;
    frame_times_ = in_words ? std::vector<int32_t>{0} : medium.frame_times;
    prompt_.media.push_back(
        {.kind = medium.kind, .source = medium.source, .patches = std::move(medium.patches)}
    );
  }

  bool medium_is_complete() const { return runs_left_ == 0; }

  void append_run(int32_t id) {
    MediaSpan& span = prompt_.media.back();
    const int merge = rules_.layout.merge_size;
    const auto [frames, height, width] = span.patches.grid_thw;
    const nn::VisionBlock block{prompt_.tokens(), height / merge, width / merge, frame_times_};
    span.runs.push_back({block.first, block.tokens()});
    prompt_.ids.insert(prompt_.ids.end(), static_cast<size_t>(block.tokens()), id);
    blocks_.push_back(block);
    --runs_left_;
  }

  Prompt take() {
    prompt_.positions = nn::mrope_positions(prompt_.tokens(), blocks_);
    return std::move(prompt_);
  }

 private:
  const MediaRules& rules_;
  Prompt prompt_;
  std::vector<nn::VisionBlock> blocks_;
  std::vector<int32_t> frame_times_;
  int runs_left_ = 0;
};

}  // namespace

void require_placeholders(
    const std::vector<int32_t>& ids, const std::vector<MediaInput>& media, const MediaRules& rules
) {
  require_one_each(ids, rules.image_token_id, media, MediaKind::image, "picture", "--image");
  require_one_each(ids, rules.video_token_id, media, MediaKind::video, "video", "--video");
}

RenderedPrompt with_times(
    const RenderedPrompt& prompt,
    const std::vector<std::vector<double>>& videos,
    const MediaRules& rules,
    const Tokenizer& tokenizer
) {
  const VideoMarks marks{
      spelling(tokenizer, rules.vision_start_token_id),
      spelling(tokenizer, rules.video_token_id),
      spelling(tokenizer, rules.vision_end_token_id),
  };
  const std::string& text = prompt.marked;
  RenderedPrompt timed{.marked = "", .marker = prompt.marker};
  size_t done = 0;
  for (const std::vector<double>& seconds : videos) {
    const size_t pad = text.find(marks.pad, done);
    if (pad == std::string::npos) {
      throw Error(
          Fault::input, "prompt", "got a video placeholder that isn't spelled {}", marks.pad
      );
    }
    timed.marked.append(text, done, pad - done).append(timed_placeholders(seconds, marks));
    done = pad + marks.pad.size();
  }
  timed.marked.append(text, done);
  return timed;
}

Prompt expand_placeholders(
    const std::vector<int32_t>& ids, std::vector<CutMedium> media, const MediaRules& rules
) {
  PromptBuilder builder(rules);
  MediaQueue pictures(media, MediaKind::image);
  MediaQueue videos(media, MediaKind::video);
  for (const int32_t id : ids) {
    if (id != rules.image_token_id && id != rules.video_token_id) {
      builder.append_text(id);
      continue;
    }
    if (builder.medium_is_complete()) {
      builder.begin_medium((id == rules.image_token_id ? pictures : videos).next());
    }
    builder.append_run(id);
  }
  return builder.take();
}

}  // namespace whimbrel
