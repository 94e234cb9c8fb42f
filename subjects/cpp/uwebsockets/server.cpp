// WebSocket echo and broadcast on uWebSockets with RapidJSON: server HOST PORT THREADS.
//
// As uWebSockets requires, each thread has its own loop, its own app and its own listening socket on the same port.
// The threads share only the list of workers. A broadcast is published in the sender's thread and passed to the loops
// of the other threads. The last thread to publish it makes the sender's loop send the receipt.
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include <App.h>
#include <sys/resource.h>

#include "envelope.h"

namespace {

constexpr unsigned MESSAGE_BYTES_MAX = 16 << 20;
// A client that leaves more than this unread is disconnected.
constexpr unsigned UNREAD_BYTES_MAX = 16 << 20;
constexpr char TOPIC[] = "all";

struct Client {
    std::uint64_t id;
};

using WebSocket = uWS::WebSocket<false, true, Client>;

class Worker;

// One broadcast, on its way through all workers.
struct Broadcast {
    Worker &origin;
    std::uint64_t sender;
    std::string payload;
    std::string text;
    std::atomic<std::size_t> workers_left;
    std::atomic<std::size_t> listeners{0};
};

class Worker {
public:
    explicit Worker(std::deque<Worker> &all) : all_(all) {}

    // Must be called in the worker's own thread, because an app belongs to the loop of the thread that creates it.
    void run(const std::string &host, int port, std::barrier<> &all_are_there)
    {
        uWS::App app;
        app_ = &app;
        loop_ = uWS::Loop::get();
        all_are_there.arrive_and_wait();
        app.ws<Client>("/ws", {
            .compression = uWS::DISABLED,
            .maxPayloadLength = MESSAGE_BYTES_MAX,
            .idleTimeout = 0,
            .maxBackpressure = UNREAD_BYTES_MAX,
            .closeOnBackpressureLimit = true,
            .sendPingsAutomatically = false,
            .open = [this](WebSocket *client) { open(client); },
            .message = [this](WebSocket *client, std::string_view text, uWS::OpCode) { message(client, text); },
            .close = [this](WebSocket *client, int, std::string_view) { clients_.erase(client->getUserData()->id); },
        });
        app.listen(host, port, [port](us_listen_socket_t *socket) {
            if (socket)
                return;
            std::cerr << "cannot listen on port " << port << '\n';
            std::_Exit(1);
        });
        app.run();
    }

private:
    void open(WebSocket *client)
    {
        client->getUserData()->id = next_id_;
        clients_.emplace(next_id_++, client);
        client->subscribe(TOPIC);
    }

    void message(WebSocket *client, std::string_view text)
    {
        if (!envelope_.parse(text))
            return;
        const std::string payload(envelope_.payload());
        if (envelope_.type() == "echo") {
            client->send(R"({"type":"echo","payload":)" + payload + '}', uWS::TEXT);
        } else if (envelope_.type() == "broadcast") {
            const auto broadcast = std::make_shared<Broadcast>(*this, client->getUserData()->id, payload,
                R"({"type":"broadcast","payload":)" + payload + '}', all_.size());
            unsettled_.push_back(broadcast);
            for (Worker &worker : all_) {
                if (&worker != this)
                    worker.loop_->defer([&worker, broadcast] { worker.publish(broadcast); });
            }
            publish(broadcast);
        }
    }

    void publish(const std::shared_ptr<Broadcast> &broadcast)
    {
        broadcast->listeners += app_->numSubscribers(TOPIC);
        app_->publish(TOPIC, broadcast->text, uWS::TEXT);
        if (--broadcast->workers_left > 0)
            return;
        if (&broadcast->origin == this)
            settle();
        else
            broadcast->origin.loop_->defer([broadcast] { broadcast->origin.settle(); });
    }

    // Sends receipts in the order of the broadcasts: when one is complete, all earlier ones are.
    void settle()
    {
        for (; !unsettled_.empty() && unsettled_.front()->workers_left == 0; unsettled_.pop_front())
            send_receipt(*unsettled_.front());
    }

    void send_receipt(const Broadcast &broadcast)
    {
        const auto sender = clients_.find(broadcast.sender);
        if (sender == clients_.end())
            return;
        sender->second->send(R"({"type":"broadcastResult","payload":)" + broadcast.payload
            + R"(,"listenerCount":)" + std::to_string(broadcast.listeners) + '}', uWS::TEXT);
    }

    std::deque<Worker> &all_;
    uWS::App *app_ = nullptr;
    uWS::Loop *loop_ = nullptr;
    Envelope envelope_;
    std::uint64_t next_id_ = 0;
    std::unordered_map<std::uint64_t, WebSocket *> clients_;
    // Broadcasts of this worker's clients that other workers may not have published yet.
    std::deque<std::shared_ptr<Broadcast>> unsettled_;
};

void raise_open_files_limit()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        std::cout << "uWebSockets 20 (libuwebsockets-sys 0.0.10), RapidJSON " RAPIDJSON_VERSION_STRING "\n";
        return 0;
    }
    if (argc != 4) {
        std::cerr << "usage: server HOST PORT THREADS\n";
        return 2;
    }
    raise_open_files_limit();
    const std::string host = argv[1];
    const int port = std::atoi(argv[2]), threads = std::max(1, std::atoi(argv[3]));

    std::deque<Worker> workers;
    for (int i = 0; i < threads; i++)
        workers.emplace_back(workers);
    std::barrier all_are_there(threads);
    std::deque<std::thread> others;
    for (int i = 1; i < threads; i++)
        others.emplace_back([&, i] { workers[i].run(host, port, all_are_there); });
    workers[0].run(host, port, all_are_there);
    for (std::thread &other : others)
        other.join();
    return 0;
}
