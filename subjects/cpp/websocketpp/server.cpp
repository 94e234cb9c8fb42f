// WebSocket echo and broadcast on WebSocket++ over Boost.Asio, with JsonCpp: server HOST PORT THREADS.
//
// All threads run one io_service. A connection's strand ensures that its handlers never run at the same time. A
// broadcast holds the shared lock of the set of connections while it sends. So several broadcasts can run at once,
// and a client that joins or leaves waits for them.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/version.hpp>
#include <jsoncpp/json/json.h>
#include <sys/resource.h>
#include <websocketpp/config/asio_no_tls.hpp>
#include <websocketpp/server.hpp>

namespace {

using websocketpp::connection_hdl;
using Server = websocketpp::server<websocketpp::config::asio>;

constexpr int BACKLOG = 4096;
// A client that leaves more than this unread is disconnected.
constexpr std::size_t UNREAD_BYTES_MAX = 16 << 20;

bool parse(const std::string &text, Json::Value &message)
{
    thread_local const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
    try {
        return reader->parse(text.data(), text.data() + text.size(), &message, nullptr) && message.isObject();
    } catch (const Json::Exception &) {
        return false; // nested too deeply
    }
}

std::string write(const Json::Value &message)
{
    static const Json::StreamWriterBuilder builder = [] {
        Json::StreamWriterBuilder made;
        made["commentStyle"] = "None";
        made["indentation"] = "";
        made["emitUTF8"] = true;
        return made;
    }();
    return Json::writeString(builder, message);
}

class Shootout {
public:
    Shootout()
    {
        server_.clear_access_channels(websocketpp::log::alevel::all);
        server_.clear_error_channels(websocketpp::log::elevel::all);
        server_.init_asio();
        server_.set_reuse_addr(true);
        server_.set_listen_backlog(BACKLOG);
        server_.set_tcp_post_init_handler([this](connection_hdl connection) {
            boost::system::error_code ignored;
            server_.get_con_from_hdl(connection)->get_socket().set_option(
                boost::asio::ip::tcp::no_delay(true), ignored);
        });
        server_.set_validate_handler([this](connection_hdl connection) {
            const auto asking = server_.get_con_from_hdl(connection);
            if (asking->get_resource() == "/ws")
                return true;
            asking->set_status(websocketpp::http::status_code::not_found);
            return false;
        });
        server_.set_http_handler([this](connection_hdl connection) {
            server_.get_con_from_hdl(connection)->set_status(websocketpp::http::status_code::not_found);
        });
        server_.set_open_handler([this](connection_hdl connection) {
            const std::unique_lock lock(guard_);
            connections_.insert(connection);
        });
        server_.set_close_handler([this](connection_hdl connection) {
            const std::unique_lock lock(guard_);
            connections_.erase(connection);
        });
        server_.set_message_handler([this](connection_hdl sender, Server::message_ptr message) {
            on_message(sender, message->get_payload());
        });
    }

    void run(const std::string &host, std::uint16_t port, int threads)
    {
        boost::asio::signal_set ending(server_.get_io_service(), SIGTERM, SIGINT);
        ending.async_wait([this](const boost::system::error_code &, int) { server_.stop(); });
        server_.listen(boost::asio::ip::tcp::endpoint(boost::asio::ip::make_address(host), port));
        server_.start_accept();

        std::vector<std::thread> others;
        for (int i = 1; i < threads; i++)
            others.emplace_back([this] { server_.run(); });
        server_.run();
        for (auto &thread : others)
            thread.join();
    }

private:
    void on_message(connection_hdl sender, const std::string &text)
    {
        Json::Value message;
        if (!parse(text, message))
            return;
        const Json::Value &type = message["type"];
        if (type == "echo")
            echo(sender, message["payload"]);
        else if (type == "broadcast")
            broadcast(sender, message["payload"]);
    }

    void echo(connection_hdl sender, const Json::Value &payload)
    {
        Json::Value reply;
        reply["type"] = "echo";
        reply["payload"] = payload;
        send(sender, write(reply));
    }

    void broadcast(connection_hdl sender, const Json::Value &payload)
    {
        Json::Value message;
        message["type"] = "broadcast";
        message["payload"] = payload;
        const std::string text = write(message);

        Json::UInt count = 0;
        {
            const std::shared_lock lock(guard_);
            for (const auto &connection : connections_)
                count += send(connection, text);
        }
        message["type"] = "broadcastResult";
        message["listenerCount"] = count;
        send(sender, write(message));
    }

    // Returns whether the message was queued: not if the client is gone or has left too much unread.
    bool send(connection_hdl handle, const std::string &text)
    {
        websocketpp::lib::error_code error;
        const auto connection = server_.get_con_from_hdl(handle, error);
        if (error)
            return false;
        if (connection->get_buffered_amount() > UNREAD_BYTES_MAX) {
            // Posted to the strand, so that it runs after the current handler. terminate(), because a closing
            // handshake would wait for the client.
            connection->get_strand()->post([connection] {
                if (connection->get_state() == websocketpp::session::state::open)
                    connection->terminate(make_error_code(websocketpp::error::general));
            });
            return false;
        }
        return !connection->send(text, websocketpp::frame::opcode::text);
    }

    Server server_;
    std::shared_mutex guard_;
    std::set<connection_hdl, std::owner_less<connection_hdl>> connections_;
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
        std::cout << websocketpp::user_agent << ", Boost " BOOST_LIB_VERSION ", JsonCpp " JSONCPP_VERSION_STRING "\n";
        return 0;
    }
    if (argc != 4) {
        std::cerr << "usage: server HOST PORT THREADS\n";
        return 2;
    }
    raise_open_files_limit();
    try {
        Shootout().run(argv[1], static_cast<std::uint16_t>(std::atoi(argv[2])), std::max(1, std::atoi(argv[3])));
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
