# HTTP client on Gun: a poolboy pool for each pool, whose workers have one connection each. A request that finds no
# worker free waits in poolboy's queue. (Gun has no pool of its own before version 2.)
#
# With the argument http2 it speaks HTTP/2 in plain text. Each pool then has one connection, and its workers are
# streams on it.

defmodule Client do
  @behaviour :talk

  def main, do: :talk.main(__MODULE__)

  defp over_http2, do: System.argv() == ["http2"]

  @impl true
  def unsupported(setup), do: if(over_http2(), do: why_not_http2(setup), else: why_not_http1(setup))

  defp why_not_http1(%{pipelining: requests}) when requests > 1 do
    "Gun pipelines, but poolboy gives a connection to one request at a time"
  end

  defp why_not_http1(_), do: :none

  defp why_not_http2(%{pool_size: connections}) when connections > 1 do
    "over HTTP/2 a pool here has one connection"
  end

  defp why_not_http2(_), do: :none

  @impl true
  def open(%{concurrency: concurrency, pools: pools} = setup) do
    {:ok, _} = Application.ensure_all_started(:gun)
    %URI{host: host, port: port, path: path} = URI.parse(setup.url)
    target = Map.merge(setup, %{host: String.to_charlist(host), port: port, path: path || "/"})
    opened = for _ <- 1..pools, do: if(over_http2(), do: shared(target), else: pool(target))

    opened |> Stream.cycle() |> Stream.map(&request/1) |> Enum.take(concurrency)
  end

  defp pool(target) do
    workers = [worker_module: Connection, size: target.pool_size, max_overflow: 0]
    {:ok, pool} = :poolboy.start_link(workers, target)
    {pool, &Connection.get/1}
  end

  defp shared(target) do
    {:ok, shared} = Shared.start_link(target)
    workers = [worker_module: Room, size: target.pipelining, max_overflow: 0]
    {:ok, pool} = :poolboy.start_link(workers, Map.put(target, :shared, shared))
    {pool, &Room.get/1}
  end

  # The wait for a connection has no time-out of its own, because it is part of the latency.
  defp request({pool, get}) do
    fn -> :poolboy.transaction(pool, get, :infinity) end
  end
end
