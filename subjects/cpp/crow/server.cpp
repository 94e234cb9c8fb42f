// WebSocket echo and broadcast on Crow over Boost.Asio, with RapidJSON: server HOST PORT THREADS.
//
// A connection belongs to the io_context of one thread, and its handlers run there. Crow passes a message for a
// connection of another thread to that thread's io_context. A broadcast holds the shared lock of the set of
// connections while it does so. So several broadcasts can run at once, and a client that joins or leaves waits for
// them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>

#include <boost/version.hpp>
#include <crow.h>
#include <rapidjson/rapidjson.h>
#include <sys/resource.h>

#include "envelope.h"

namespace {

using crow::websocket::connection;

constexpr std::uint64_t MESSAGE_BYTES_MAX = 16 << 20;

class Shootout {
public:
    Shootout()
    {
        app_.loglevel(crow::LogLevel::Critical);
        CROW_WEBSOCKET_ROUTE(app_, "/ws")
            .max_payload(MESSAGE_BYTES_MAX)
            .onopen([this](connection &client) {
                const std::unique_lock lock(guard_);
                connections_.insert(&client);
            })
            // Crow calls this also when a connection breaks.
            .onclose([this](connection &client, const std::string &, std::uint16_t) {
                const std::unique_lock lock(guard_);
                connections_.erase(&client);
            })
            .onmessage([this](connection &sender, const std::string &text, bool) { on_message(sender, text); });
    }

    void run(const std::string &host, std::uint16_t port, unsigned threads)
    {
        // Crow counts the thread that accepts.
        app_.bindaddr(host).port(port).concurrency(threads + 1).run();
    }

private:
    void on_message(connection &sender, const std::string &text)
    {
        thread_local Envelope envelope;
        if (!envelope.parse(text))
            return;
        const std::string payload(envelope.payload());
        if (envelope.type() == "echo")
            sender.send_text(R"({"type":"echo","payload":)" + payload + '}');
        else if (envelope.type() == "broadcast")
            broadcast(sender, payload);
    }

    void broadcast(connection &sender, const std::string &payload)
    {
        const std::string text = R"({"type":"broadcast","payload":)" + payload + '}';
        std::size_t count = 0;
        {
            const std::shared_lock lock(guard_);
            for (connection *client : connections_)
                client->send_text(text);
            count = connections_.size();
        }
        sender.send_text(R"({"type":"broadcastResult","payload":)" + payload + R"(,"listenerCount":)"
            + std::to_string(count) + '}');
    }

    crow::SimpleApp app_;
    std::shared_mutex guard_;
    std::unordered_set<connection *> connections_;
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
    if (argc == 2 && std::string(argv[1]) == "--version") {
        std::cout << "Crow 1.3.3, Boost " BOOST_LIB_VERSION ", RapidJSON " RAPIDJSON_VERSION_STRING "\n";
        return 0;
    }
    if (argc != 4) {
        std::cerr << "usage: server HOST PORT THREADS\n";
        return 2;
    }
    raise_open_files_limit();
    try {
        Shootout().run(argv[1], static_cast<std::uint16_t>(std::atoi(argv[2])),
            static_cast<unsigned>(std::max(1, std::atoi(argv[3]))));
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
