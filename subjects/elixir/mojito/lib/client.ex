# GETs with Mojito, which has pools of its own kind for each host: it deals requests to them at random, and those that find no
# connection wait in the queue of a poolboy. Its time-out is one for the wait and the answer, and a request whose connection
# was closed is sent again.

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
