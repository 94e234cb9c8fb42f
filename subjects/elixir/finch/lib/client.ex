# HTTP client on Finch: an instance for each pool. A request that finds no connection waits in the queue of its
# NimblePool.

defmodule Client do
  @behaviour :talk

  def main, do: :talk.main(__MODULE__)

  @impl true
  def unsupported(%{pipelining: requests}) when requests > 1, do: "Finch does not pipeline"
  def unsupported(_), do: :none

  @impl true
  def open(%{concurrency: concurrency, pools: pools} = setup) do
    {:ok, _} = Application.ensure_all_started(:finch)
    request = Finch.build(:get, setup.url, headers(setup))
    # The wait for a connection has no time-out of its own, because it is part of the latency.
    options = [pool_timeout: :infinity, receive_timeout: setup.timeout_ms]

    1..pools
    |> Enum.map(&open_pool(&1, setup))
    |> Stream.cycle()
    |> Stream.map(fn name -> fn -> get(name, request, options) end end)
    |> Enum.take(concurrency)
  end

  defp open_pool(pool, setup) do
    name = :"pool#{pool}"
    connecting = [transport_opts: [timeout: setup.timeout_ms]]
    size = [size: setup.pool_size, count: 1, conn_opts: connecting]
    {:ok, _} = Finch.start_link(name: name, pools: %{:default => size})
    name
  end

  defp headers(%{keep_alive: true}), do: []
  defp headers(%{keep_alive: false}), do: [{"connection", "close"}]

  defp get(name, request, options) do
    case Finch.request(request, name, options) do
      {:ok, %{status: 200}} -> :ok
      {:ok, _} -> "status"
      {:error, why} -> :talk.class_of(why)
    end
  end
end
