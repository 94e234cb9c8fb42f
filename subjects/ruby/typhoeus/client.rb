# HTTP client on Typhoeus: a Hydra for each pool. Its max_concurrency is the pool's size; further requests wait in its
# queue.
#
# A Hydra runs in the thread that calls it and waits with select(), so each has a thread of its own. The time-out of a
# request begins when it leaves the queue.

require "typhoeus"
require_relative "talk"

Thread.abort_on_exception = true

class Client
  def initialize(setup)
    @options = options(setup)
    @url = setup.url
    @lock = Mutex.new
    size = setup.pool_size
    @hydras = Array.new(setup.pools) { Typhoeus::Hydra.new(max_concurrency: size, maxconnects: size) }
    # The open requests of each pool. If they cannot be divided evenly, the first pools have one more.
    @shares = @hydras.each_index.map { |pool| (setup.concurrency - pool + setup.pools - 1) / setup.pools }
  end

  # Performs `number` requests.
  def go(number)
    @left = number
    threads = @hydras.zip(@shares).map { |hydra, share| Thread.new { work(hydra, share) } }
    threads.map(&:value).reduce(Tally.new) { |total, tally| total.add(tally) }
  end

  private

  def work(hydra, share)
    tally = Tally.new
    share.times { ask(hydra, tally) }
    hydra.run
    tally
  end

  # Queues a request. When it ends, it queues the next one.
  def ask(hydra, tally)
    return unless @lock.synchronize { (@left -= 1) >= 0 }

    request = Typhoeus::Request.new(@url, @options)
    begun_s = Talk.now_s
    request.on_complete do |response|
      if (name = class_of(response))
        tally.failed[name] += 1
      else
        tally.latencies_us << (Talk.now_s - begun_s) * 1e6
      end
      ask(hydra, tally)
    end
    hydra.queue(request)
  end

  def options(setup)
    common = { method: :get, proxy: "", timeout_ms: setup.timeout_ms, connecttimeout_ms: setup.timeout_ms }
    return common if setup.keep_alive

    { **common, forbid_reuse: true, headers: { "Connection" => "close" } }
  end

  # Returns the failure class, or nil if the answer was as expected.
  def class_of(response)
    case response.return_code
    when :ok then response.code == 200 ? nil : "status"
    # Typhoeus does not report the system's error (errno).
    when :couldnt_connect then out_of_files? ? "local.fds" : "connect.refused"
    when :operation_timedout then response.starttransfer_time.to_f.zero? ? "timeout.first_byte" : "timeout.total"
    when :got_nothing then "empty"
    when :partial_file then "truncated"
    when :recv_error, :send_error then "reset"
    else "other"
    end
  end

  def out_of_files?
    File.open(File::NULL).close
    false
  rescue Errno::EMFILE, Errno::ENFILE
    true
  end
end

setup = Talk.hear_setup
Talk.refuse("libcurl, on which Typhoeus stands, does not pipeline") if setup.pipelining > 1
client = Client.new(setup)
Talk.hear_orders { |number| client.go(number) }
