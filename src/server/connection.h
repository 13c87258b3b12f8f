#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "server/answer_channel.h"
#include "server/body_reader.h"
#include "server/deadline.h"
#include "server/request_head.h"
#include "server/response_head.h"
#include "server/server_core.h"
#include "server/transport.h"

namespace whimbrel::http {

/// One client's connection: its requests, one after the other. Reading never stops, for that is how
/// a client that leaves is seen. Runs on one strand; start, drain and stop may be called from
/// anywhere.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(
      std::shared_ptr<ServerCore> core,
      std::unique_ptr<Transport> transport,
      const boost::asio::any_io_executor& strand,
      std::string client
  );
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();

  /// Answers 503 whatever is asked.
  void start_refused();

  /// Ends behind the answer that is open, now where none is.
  void drain();

  /// Ends now: an open answer gets its last words.
  void stop();

 private:
  enum class Stage {
    handshake,
    idle,  // between requests
    head,
    body,
    answering,
    lingering,  // everything is sent; what still comes is dropped, for a reset would take the
                // answer
    closed,
  };

  /// A request from its head to its log line.
  struct Current {
    explicit Current(const std::shared_ptr<ServerCore>& core) : lease(core->bodies) {}

    Stopwatch watch = {};
    Request request = {};
    RouteMatch match = {};
    std::optional<BodyReader> body = {};
    BodyLease lease;
    std::shared_ptr<AnswerChannel> channel = {};  // once a handler is to answer
    AnswerFrame frame = {};
    bool is_http_1_0 = false;
    bool is_head = false;
    bool is_event_stream = false;
    bool complete = false;  // the answer's last byte is on its way
    bool broken = false;    // what is on its way is the last that will be
    AccessLogEntry entry = {};
  };

  // --- connection.cpp: the connection, and what comes in
  template <typename Step>
  void on_strand(Step step);
  void await_request(std::chrono::milliseconds time);
  void read_more();
  void on_input();
  void on_input_end();
  void on_deadline();
  void read_head();
  void read_body();
  void wait_for_body();
  void linger();
  Outcome ended_by(Outcome outcome) const;
  void close(Outcome outcome);
  void note_answer();
  void log(Outcome outcome);

  // --- connection_request.cpp: what is asked, and by whom
  void begin_record();
  void begin_request(RequestHead head, std::string_view head_bytes);
  /// An answer that no handler makes; an error is thrown.
  std::optional<Response> answer_without_handler();
  void begin_body(const RequestHead& head, std::string_view head_bytes);
  void dispatch();

  // --- connection_answer.cpp: what goes out
  void refuse(const ApiError& error);
  void send_whole(const Response& response);
  void begin_stream(const StreamHead& head);
  void flush();
  void send_output(const AnswerChannel::Output& output);
  void watch_reader();
  void expect_ping();
  void send(std::string_view bytes);
  void send_next();
  void on_sent();
  void finish_answer();

  std::shared_ptr<ServerCore> core_;
  std::unique_ptr<Transport> transport_;
  boost::asio::any_io_executor strand_;
  std::string client_;
  Stage stage_ = Stage::handshake;

  std::array<char, 16384> piece_ = {};
  std::string input_;  // read, not yet used
  bool reading_ = false;
  bool input_ended_ = false;
  HeadScanner scanner_;
  std::chrono::steady_clock::time_point body_end_ = {};
  Deadline input_deadline_;

  std::optional<Current> current_;
  bool keep_alive_ = true;
  bool stopping_ = false;

  std::string outgoing_;
  size_t sent_ = 0;  // of outgoing_
  bool writing_ = false;
  Deadline write_deadline_;  // for a piece to be taken
  Deadline full_deadline_;   // for a stream's buffer to have room
  Deadline ping_deadline_;
};

}  // namespace whimbrel::http
