# Echo and broadcast. Each client subscribes to a stream of its own and to the stream of all clients. Its receipt goes
# through its own stream, so that it is sent after the broadcast.

require "securerandom"

class BenchmarkChannel < ApplicationCable::Channel
  EVERYBODY = "all"

  def subscribed
    @own = SecureRandom.uuid
    stream_from @own
    stream_from EVERYBODY
  end

  def echo(data)
    transmit(data)
  end

  def broadcast(data)
    ActionCable.server.broadcast(EVERYBODY, data)
    ActionCable.server.broadcast(@own, data.merge("action" => "broadcastResult"))
  end
end
