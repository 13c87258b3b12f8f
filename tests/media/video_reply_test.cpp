#include "media/video_reply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "videokit.h"

namespace whimbrel {
namespace {

using videokit::kReplyMagic;
using videokit::Status;

/// Gives the bytes of a value, then runs dry.
template <typename T>
ByteSource bytes_of(const T& value) {
  return [value, given = false](void* data, size_t size) mutable {
    if (given || size != sizeof value) {
      throw Error(Fault::input, "source", "ran dry");
    }
    std::memcpy(data, &value, size);
    given = true;
  };
}

TEST(VideoReply, a_timeline_is_taken_where_it_is_possible) {
  const videokit::Timeline good{kReplyMagic, Status::done, 12, 10};
  EXPECT_EQ(read_video_timeline(bytes_of(good), "clip").frames, 12);
  const std::vector<videokit::Timeline> wrong = {
      {0, Status::done, 12, 10},
      {kReplyMagic, static_cast<Status>(99), 12, 10},
      {kReplyMagic, Status::broken, 12, 10},
      {kReplyMagic, Status::done, 0, 10},
      {kReplyMagic, Status::done, -1, 10},
      {kReplyMagic, Status::done, videokit::kMaxPackets + 1, 10},
      {kReplyMagic, Status::done, 12, 0},
      {kReplyMagic, Status::done, 12, std::nan("")},
      {kReplyMagic, Status::done, 12, HUGE_VAL},
  };
  for (const videokit::Timeline& timeline : wrong) {
    EXPECT_THROW(read_video_timeline(bytes_of(timeline), "clip"), Error);
  }
}

TEST(VideoReply, a_frames_size_is_checked_before_memory_is_taken) {
  const std::vector<videokit::Frame> wrong = {
      {kReplyMagic, Status::done, 0, 10},
      {kReplyMagic, Status::done, 10, 0},
      {kReplyMagic, Status::done, 16385, 1},
      {kReplyMagic, Status::done, 16384, 16384},
      {kReplyMagic, Status::done, UINT32_MAX, UINT32_MAX},
      {kReplyMagic, Status::changing_size, 4, 4},
  };
  for (const videokit::Frame& frame : wrong) {
    try {
      read_video_frame(bytes_of(frame), "clip");
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("[clip] got ")) << error.what();
    }
  }
}

TEST(VideoReply, each_reason_has_its_own_words) {
  std::vector<std::string> texts;
  for (uint32_t status = 1; status <= static_cast<uint32_t>(Status::last); ++status) {
    const videokit::Timeline timeline{kReplyMagic, static_cast<Status>(status), 0, 0};
    try {
      read_video_timeline(bytes_of(timeline), "clip");
    } catch (const Error& error) {
      texts.emplace_back(error.what());
    }
  }
  std::ranges::sort(texts);
  EXPECT_EQ(texts.size(), static_cast<size_t>(Status::last));
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
}

}  // namespace
}  // namespace whimbrel
