# The protocol between trueload and a client in Ruby. The setup and the orders come on stdin, and the result of each
# order goes to stdout as a line of JSON. Any other input ends the program with an error. This file must not use an
# HTTP library.

require "json"

# The first line: `concurrency` requests at once, over `pools` client objects with `pool_size` connections each.
Setup = Struct.new(:url, :concurrency, :pools, :pool_size, :timeout_ms, :pipelining, :keep_alive, keyword_init: true)

# The results of an order, or of a part of it. Only answered requests have latencies.
class Tally
  attr_reader :latencies_us, :failed

  def initialize
    @latencies_us = []
    @failed = Hash.new(0)
  end

  def add(other)
    @latencies_us.concat(other.latencies_us)
    @failed.merge!(other.failed) { |_, ours, theirs| ours + theirs }
    self
  end

  def claim(elapsed_s)
    { ok: @latencies_us.size, failed: @failed, elapsed_s: elapsed_s, latency_us: figures }
  end

  private

  def figures
    return nil if @latencies_us.empty?

    sorted = @latencies_us.sort
    { p50: 0.5, p90: 0.9, p99: 0.99, max: 1 }.transform_values { |share| sorted[(share * sorted.size).ceil - 1] }
  end
end

module Talk
  KINDS = {
    url: [String], concurrency: [Integer], pools: [Integer], pool_size: [Integer],
    timeout_ms: [Integer], pipelining: [Integer], keep_alive: [TrueClass, FalseClass]
  }.freeze

  module_function

  # Reads the setup from the first line; ends the program if it is invalid.
  def hear_setup
    given = JSON.parse($stdin.gets.to_s, symbolize_names: true)
    abort "no setup: it is no object" unless given.is_a?(Hash)
    KINDS.each { |name, kinds| abort "no setup: #{name}" unless kinds.include?(given[name].class) }
    Setup.new(**given)
  rescue JSON::ParserError, ArgumentError => e
    abort "no setup: #{e.message[0, 80]}"
  end

  def refuse(why)
    say(unsupported: why)
    exit 0
  end

  # Calls the block with the number of requests of each order. The block performs the order and returns its tally.
  def hear_orders
    say(ready: true)
    $stdin.each_line do |line|
      order = /\Ago (\d{1,9})\s*\z/.match(line) or abort "no order: #{line[0, 80].inspect}"
      begun_s = now_s
      tally = yield order[1].to_i
      say(tally.claim(now_s - begun_s))
    end
  end

  def now_s
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def say(line)
    $stdout.puts(JSON.generate(line))
    $stdout.flush
  end
end
