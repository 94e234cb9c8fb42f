# WebSocket echo and broadcast on EventMachine and em-websocket: server.rb HOST PORT.
#
# EventMachine has only one reactor, so the server has one thread. It runs on MRI and on JRuby.

require "em-websocket"
require "json"
require "set"
require "socket"

BACKLOG = 4096
CONNECTIONS_MAX = 1 << 20
MESSAGE_BYTES_MAX = 16 << 20
# A client that leaves more than this unread is disconnected.
UNREAD_BYTES_MAX = 16 << 20

class Shootout
  def initialize
    @clients = Set.new
  end

  def welcome(client)
    client.onopen { |handshake| handshake.path == "/ws" ? @clients.add(client) : client.close(4004, "not found") }
    client.onclose { @clients.delete(client) }
    client.onmessage { |text| hear(client, text) }
    # em-websocket has closed the connection already.
    client.onerror { |error| raise error unless error.is_a?(EM::WebSocket::WebSocketError) }
  end

  private

  # Answers a message. Ignores a text that is not a valid message.
  def hear(client, text)
    message = JSON.parse(text)
    return unless message.is_a?(Hash)

    case message["type"]
    when "echo" then send(client, JSON.generate(type: "echo", payload: message["payload"]))
    when "broadcast" then broadcast(client, message["payload"])
    end
  rescue JSON::JSONError
    nil
  end

  def broadcast(sender, payload)
    text = JSON.generate(type: "broadcast", payload: payload)
    count = @clients.count { |client| send(client, text) }
    send(sender, JSON.generate(type: "broadcastResult", payload: payload, listenerCount: count))
  end

  # Returns whether the text was queued: not if the client is closing or has left too much unread.
  def send(client, text)
    if client.get_outbound_data_size > UNREAD_BYTES_MAX
      client.close_connection
      return false
    end
    return false unless client.state == :connected

    client.send_text(text)
    true
  end
end

# Begins to listen. EventMachine's own listening sockets have a backlog of 100.
def listen(host, port, shootout)
  welcome = proc { |client| shootout.welcome(client) }
  # In Java it takes no socket but its own, whose backlog is 50.
  return EM.start_server(host, Integer(port), EM::WebSocket::Connection, {}, &welcome) if RUBY_ENGINE == "jruby"

  listener = Socket.new(Addrinfo.tcp(host, port).afamily, :STREAM)
  listener.setsockopt(:SOCKET, :REUSEADDR, true)
  listener.bind(Addrinfo.tcp(host, port))
  listener.listen(BACKLOG)
  EM.attach_server(listener, EM::WebSocket::Connection, {}, &welcome)
end

EM.epoll
EM.set_descriptor_table_size([Process.getrlimit(:NOFILE).last, CONNECTIONS_MAX].min)
EM::WebSocket.max_frame_size = MESSAGE_BYTES_MAX
EM.run do
  trap("TERM") { EM.stop }
  listen(*ARGV, Shootout.new)
end
