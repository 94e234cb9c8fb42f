# HTTP client on Mojito, which has several pools for each host and distributes requests among them at random. A
# request that finds no connection waits in a poolboy queue. One time-out covers the wait and the answer. Mojito
# repeats a request whose connection was closed.

defmodule Client do
  @behaviour :talk

  def main, do: :talk.main(__MODULE__)

  @impl true
  def unsupported(%{pipelining: requests}) when requests > 1, do: "Mojito does not pipeline"
  def unsupported(_), do: :none

  @impl true
  def open(%{concurrency: concurrency} = setup) do
    pools = [size: setup.pool_size, max_overflow: 0, pools: setup.pools]
    Application.put_env(:mojito, :pool_opts, pools)
    {:ok, _} = Application.ensure_all_started(:mojito)

    request = %{
      method: :get,
      url: setup.url,
      headers: headers(setup),
      opts: [timeout: setup.timeout_ms, transport_opts: [timeout: setup.timeout_ms]]
    }

    List.duplicate(fn -> get(request) end, concurrency)
  end

  defp headers(%{keep_alive: true}), do: []
  defp headers(%{keep_alive: false}), do: [{"connection", "close"}]

  defp get(request) do
    case Mojito.request(request) do
      {:ok, %{status_code: 200}} -> :ok
      {:ok, _} -> "status"
      {:error, %{reason: :checkout_timeout}} -> "timeout.total"
      {:error, why} -> :talk.class_of(why)
    end
  end
end
