# GETs with Gun: a pool of poolboy's for each pool, whose workers have a connection each; what finds none waits in
# poolboy's queue. Gun has no pool of its own before its version 2.

defmodule Client do
  @behaviour :talk

  def main, do: :talk.main(__MODULE__)

  @impl true
  def unsupported(%{pipelining: requests}) when requests > 1 do
    "Gun pipelines, but poolboy gives a connection to one request at a time"
  end

  def unsupported(_), do: :none

  @impl true
  def open(%{concurrency: concurrency, pools: pools} = setup) do
    {:ok, _} = Application.ensure_all_started(:gun)
    %URI{host: host, port: port, path: path} = URI.parse(setup.url)
    target = Map.merge(setup, %{host: String.to_charlist(host), port: port, path: path || "/"})
    workers = [worker_module: Connection, size: setup.pool_size, max_overflow: 0]

    opened =
      for _ <- 1..pools do
        {:ok, pool} = :poolboy.start_link(workers, target)
        pool
      end

    opened |> Stream.cycle() |> Stream.map(&request/1) |> Enum.take(concurrency)
  end

  # The wait for a connection has no limit of its own, as the latency counts it.
  defp request(pool) do
    fn -> :poolboy.transaction(pool, &Connection.get/1, :infinity) end
  end
end
