#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"

namespace whimbrel::http {

/// Why nobody reads an answer any more.
enum class CloseReason {
  client_left,   // it closed or reset the connection
  slow_reader,   // it left too much of a stream waiting for too long
  server_stops,  // the time for open answers is over
};

/// One request and its answer. Every call may come from any thread and none waits for the client.
/// Whoever is to answer keeps the exchange; where the last one lets go of it unanswered, the client
/// gets 500, and where it does inside a stream, the connection breaks off.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;

  /// Gives the request's body up, which the server counts among those that it holds.
  virtual std::string take_body() = 0;

  /// Names of the request's fields that change nothing, for the log, which cuts and escapes them.
  /// To be noted before an answer is begun.
  virtual void note_ignored(std::vector<std::string> names) = 0;

  /// The whole answer. A second answer is std::logic_error.
  virtual void respond(Response response) = 0;

  /// Begins an answer in pieces: its head leaves at once. A second answer is std::logic_error.
  virtual void start_stream(StreamHead head) = 0;

  /// Adds bytes to a started stream; of an event stream, whole frames: comments may come between
  /// two calls. std::logic_error outside of a stream.
  virtual void write(std::string_view bytes) = 0;

  /// Ends a stream; `failure`, for the log, where its last event is an error of the server's.
  /// std::logic_error outside of one.
  virtual void finish(std::string failure = {}) = 0;

  /// Answers that the server failed, or breaks off a started stream, for a reason that is for the
  /// log alone. Does nothing behind a whole answer.
  virtual void fail(std::string reason) = 0;

  /// Calls back once when the answer can't reach the client any more; at once where that is so
  /// already; never once the answer has left as a whole. It runs on a thread that serves
  /// connections, so it has to be quick. When the server stops it may still write and finish.
  virtual void on_close(std::function<void(CloseReason)> callback) = 0;

  /// Whether nobody reads the answer any more; what is written then is dropped.
  virtual bool closed() const = 0;
};

}  // namespace whimbrel::http
