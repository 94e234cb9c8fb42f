# Echo and broadcast. Each client has a stream of its own besides the one of all, through which its receipt comes behind
# its broadcast.

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
