// Requests of clients go over a socket to a worker, and its answers back.

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "server/worker_link.h"
#include "server/worker_server.h"
#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

const std::string kRefusal = "\"code\":\"worker_died\"";

ApiError died() {
  return {.kind = ErrorKind::bad_gateway, .message = "died", .code = "worker_died"};
}

/// A server whose routes a worker answers, in the same process.
class Front {
 public:
  explicit Front(const std::vector<Route>& routes, const WorkerServerOptions& options = {}) {
    int ends[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    worker_ = std::make_unique<WorkerServer>(
        ends[1],
        routes,
        [] { return WorkerReport{.running = 1, .steps = 2, .metrics = "m"}; },
        options
    );
    link_ = std::make_shared<WorkerLink>(
        ends[0],
        WorkerLink::Listener{
            .ready = [this] { ready_ = true; },
            .report = [this](const WorkerReport& report) { reported_ = report.metrics == "m"; },
            .ended = [this] { ended_ = true; }
        }
    );
    std::vector<Route> handed_on;
    for (const Route& route : routes) {
      handed_on.push_back(route);
      handed_on.back().immediate = true;
      handed_on.back().handler = [this](const ExchangePtr& exchange) { link_->forward(exchange); };
    }
    server_ = std::make_unique<TestServer>(std::move(handed_on));
    link_->start();
    thread_ = std::thread([this] { worker_->run(); });
    EXPECT_TRUE(eventually([this] { return ready_.load(); }));
  }

  ~Front() {
    server_.reset();
    link_.reset();
    thread_.join();
  }

  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  TestServer& operator*() { return *server_; }
  TestServer* operator->() { return server_.get(); }
  WorkerLink& link() { return *link_; }
  bool reported() const { return reported_; }
  bool ended() const { return ended_; }

 private:
  std::unique_ptr<WorkerServer> worker_;
  std::shared_ptr<WorkerLink> link_;
  std::unique_ptr<TestServer> server_;
  std::atomic<bool> ready_ = false;
  std::atomic<bool> reported_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

TEST(WorkerLink, whole_answers_come_through) {
  Front front({public_route("POST", "/echo", [](const ExchangePtr& exchange) {
    const std::string id = exchange->request().request_id;
    exchange->respond(
        {.status = 404,
         .content_type = "text/plain",
         .body = exchange->take_body() + id,
         .fields = {{"X-More", "y"}}}
    );
  })});
  const std::string body(3 << 20, 'b');
  const auto got = request_once(front->port(), post("/echo", body, "x-request-id: mine\r\n"));
  EXPECT_EQ(got->status, 404);
  EXPECT_EQ(got->body, body + "mine");
  EXPECT_EQ(got->fields.at("content-type"), "text/plain");
  EXPECT_EQ(got->fields.at("x-more"), "y");
  EXPECT_TRUE(front->counts(Outcome::answered, 1));
}

TEST(WorkerLink, streams_come_through_piece_by_piece) {
  Inbox inbox;
  Front front({public_route("POST", "/", inbox.handler())});
  RawClient client(front->port());
  client.send(post("/", "{}"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  exchange->write("data: 1\n\n");
  EXPECT_TRUE(client.receive_until("data: 1\n\n"));
  for (int i = 2; i < 1000; ++i) {
    exchange->write(fmt::format("data: {}\n\n", i));
  }
  exchange->finish();
  const auto rest = client.receive_until("0\r\n\r\n");
  ASSERT_TRUE(rest);
  size_t at = 0;
  for (int i = 2; i < 1000; ++i) {
    at = rest->find(fmt::format("data: {}\n\n", i), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(WorkerLink, a_handler_that_throws_is_an_error_and_logged) {
  Front front({public_route("POST", "/", [](const ExchangePtr&) {
    throw std::runtime_error("secret reason");
  })});
  const auto got = request_once(front->port(), post("/", "{}"));
  EXPECT_EQ(got->status, 500);
  EXPECT_EQ(got->body.find("secret"), std::string::npos);
  ASSERT_TRUE(front->counts(Outcome::failed, 1));
  EXPECT_TRUE(front->logs_failure("secret reason"));
}

TEST(WorkerLink, a_stream_that_is_let_go_breaks_off_and_is_logged) {
  Inbox inbox;
  Front front({public_route("POST", "/", inbox.handler())});
  RawClient client(front->port());
  client.send(post("/", "{}"));
  ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  exchange->write("data: 1\n\n");
  exchange.reset();
  EXPECT_TRUE(client.receive_all()->ends_with("data: 1\n\n\r\n"));
  ASSERT_TRUE(front->counts(Outcome::failed, 1));
  EXPECT_TRUE(front->logs_failure("let go"));
}

TEST(WorkerLink, a_client_that_leaves_is_noticed_behind_it) {
  Inbox inbox;
  Front front({public_route("POST", "/", inbox.handler())});
  RawClient client(front->port());
  client.send(post("/", "{}"));
  const ExchangePtr exchange = inbox.take();
  std::atomic<bool> told = false;
  exchange->on_close([&](CloseReason) { told = true; });
  client.close();
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_TRUE(exchange->closed());
}

TEST(WorkerLink, the_death_of_a_worker_is_an_error_for_whole_answers) {
  Inbox inbox;
  Front front({public_route("POST", "/", inbox.handler())});
  RawClient client(front->port());
  client.send(post("/", "{}"));
  const ExchangePtr exchange = inbox.take();
  EXPECT_EQ(front.link().fail_all(died()), 1U);
  const auto got = client.receive();
  EXPECT_EQ(got->status, 502);
  EXPECT_NE(got->body.find(kRefusal), std::string::npos);
  EXPECT_EQ(request_once(front->port(), post("/", "{}"))->status, 502);
  EXPECT_TRUE(front->counts(Outcome::failed, 1));
  exchange->respond({});  // too late for anyone
}

TEST(WorkerLink, the_death_of_a_worker_is_the_last_event_of_streams) {
  for (const std::string path : {"/v1/responses", "/v1/messages"}) {
    Inbox inbox;
    Front front({public_route("POST", path, inbox.handler())});
    RawClient client(front->port());
    client.send(post(path, "{}"));
    const ExchangePtr exchange = inbox.take();
    exchange->start_stream({});
    exchange->write("data: 1\n\n");
    ASSERT_TRUE(client.receive_until("data: 1\n\n"));
    front.link().fail_all(died());
    const auto rest = client.receive_until("0\r\n\r\n");
    ASSERT_TRUE(rest);
    const bool is_event = rest->find("event: error\n") != std::string::npos;
    EXPECT_EQ(is_event, path == "/v1/messages");
    EXPECT_NE(rest->find("died"), std::string::npos);
  }
}

TEST(WorkerLink, a_server_that_stops_tells_streams_so) {
  Inbox inbox;
  Front front({public_route("POST", "/", inbox.handler())});
  RawClient client(front->port());
  client.send(post("/", "{}"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_FALSE((*front)->drain(milliseconds(0)));
  EXPECT_NE(client.receive_all()->find("the server stops"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return exchange->closed(); }));
}

TEST(WorkerLink, an_answer_that_is_too_long_is_an_error_for_its_own_client_alone) {
  Front front(
      {public_route("GET", "/long", answer(std::string(1001, 'x'))),
       public_route("GET", "/short", answer(std::string(1000, 'x')))},
      {.longest_answer = 1000}
  );
  EXPECT_EQ(front->get("/long")->status, 500);
  EXPECT_EQ(front->get("/short")->body.size(), 1000U);
  EXPECT_TRUE(front->counts(Outcome::failed, 1));
}

TEST(WorkerLink, bodies_that_no_handler_has_read_are_bounded) {
  Inbox inbox;
  Front front({public_route("POST", "/", inbox.handler())}, {.bodies_bytes = 1500});
  const std::string body(1000, 'x');
  RawClient first(front->port());
  first.send(post("/", body));
  const ExchangePtr waiting = inbox.take();
  const auto refused = request_once(front->port(), post("/", body));
  EXPECT_EQ(refused->status, 503);
  EXPECT_NE(refused->body.find("bodies_too_large"), std::string::npos);
  EXPECT_EQ(waiting->take_body(), body);
  RawClient second(front->port());
  second.send(post("/", body));
  inbox.take()->respond({});
  EXPECT_EQ(second.receive()->status, 200);
  waiting->respond({});
}

TEST(WorkerLink, reports_come_by_themselves) {
  Front front({public_route("POST", "/", answer(""))});
  EXPECT_TRUE(eventually([&] { return front.reported(); }));
  EXPECT_FALSE(front.ended());
}

/// A link whose other end is the test's.
struct Bare {
  Bare() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link = std::make_shared<WorkerLink>(
        ends[0],
        WorkerLink::Listener{
            .ready = [this] { ready = true; },
            .report = [](const WorkerReport&) {},
            .ended = [this] { ended = true; }
        }
    );
    link->start();
  }
  ~Bare() { close(ends[1]); }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void say(const std::string& bytes) {
    EXPECT_EQ(write(ends[1], bytes.data(), bytes.size()), std::ssize(bytes));
  }

  int ends[2] = {};
  std::atomic<bool> ready = false;
  std::atomic<bool> ended = false;
  std::shared_ptr<WorkerLink> link;
};

TEST(WorkerLink, a_worker_that_talks_nonsense_is_given_up) {
  for (const std::string& nonsense :
       {std::string(kFrameHeadBytes, '\xff'),
        encode_head({FrameKind::status, 0, "no json"}) + "no json"}) {
    Bare bare;
    bare.say(nonsense);
    EXPECT_TRUE(eventually([&] { return bare.ended.load(); }));
  }
}

TEST(WorkerLink, answers_to_nobody_are_dropped) {
  Bare bare;
  for (const FrameKind kind :
       {FrameKind::stream,
        FrameKind::piece,
        FrameKind::finish,
        FrameKind::whole,
        FrameKind::failed}) {
    bare.say(encode_head({kind, 99, "{}"}) + "{}");
  }
  bare.say(encode_head({FrameKind::ready, 0, ""}));
  EXPECT_TRUE(eventually([&] { return bare.ready.load(); }));
  EXPECT_FALSE(bare.ended);
}

}  // namespace
}  // namespace whimbrel::http::test
