# What all channels have in common: nothing here.

module ApplicationCable
  class Channel < ActionCable::Channel::Base
  end
end
