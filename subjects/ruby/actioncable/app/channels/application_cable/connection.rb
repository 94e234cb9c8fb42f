# The base class of the clients' connections to Action Cable.

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    # If a client reads nothing for so long, the kernel ends its connection. Action Cable itself queues without a
    # limit.
    UNREAD_MS_MAX = 10_000

    def connect
      env["puma.socket"].setsockopt(Socket::IPPROTO_TCP, Socket::TCP_USER_TIMEOUT, UNREAD_MS_MAX)
    rescue SystemCallError
      nil # It is gone already.
    end
  end
end
