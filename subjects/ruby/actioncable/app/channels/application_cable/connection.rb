# Every connection of a client to Action Cable.

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    # A client that takes nothing for so long is disconnected, by the kernel: Action Cable keeps all that it does not read.
    UNREAD_MS_MAX = 10_000

    def connect
      env["puma.socket"].setsockopt(Socket::IPPROTO_TCP, Socket::TCP_USER_TIMEOUT, UNREAD_MS_MAX)
    rescue SystemCallError
      nil # It is gone already.
    end
  end
end
