# The base class of all channels. It adds nothing.

module ApplicationCable
  class Channel < ActionCable::Channel::Base
  end
end
