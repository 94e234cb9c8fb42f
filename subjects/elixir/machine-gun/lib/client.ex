# HTTP client on MachineGun: a pool group for each pool. A request that finds no connection waits in the queue of its
# poolboy.

defmodule Client do
  @behaviour :talk

  def main, do: :talk.main(__MODULE__)

  @impl true
  def unsupported(%{pipelining: requests}) when requests > 1, do: "MachineGun does not pipeline"
  def unsupported(_), do: :none

  @impl true
  def open(%{concurrency: concurrency, pools: pools} = setup) do
    {:ok, _} = Application.ensure_all_started(:machine_gun)

    1..pools
    |> Enum.map(&open_group(&1, setup))
    |> Stream.cycle()
    |> Stream.map(fn group -> fn -> get(setup.url, headers(setup), %{pool_group: group}) end end)
    |> Enum.take(concurrency)
  end

  defp open_group(pool, setup) do
    group = :"pool#{pool}"

    Application.put_env(:machine_gun, group, %{
      pool_size: setup.pool_size,
      pool_max_overflow: 0,
      # The wait for a connection has no time-out of its own, because it is part of the latency.
      pool_timeout: :infinity,
      request_timeout: setup.timeout_ms,
      conn_opts: %{protocols: [:http], connect_timeout: setup.timeout_ms}
    })

    group
  end

  defp headers(%{keep_alive: true}), do: []
  defp headers(%{keep_alive: false}), do: [{"connection", "close"}]

  defp get(url, headers, options) do
    case MachineGun.get(url, headers, options) do
      {:ok, %{status_code: 200}} -> :ok
      {:ok, _} -> "status"
      {:error, %{reason: :request_timeout}} -> "timeout.total"
      {:error, %{reason: :normal}} -> "empty"
      {:error, why} -> :talk.class_of(why)
    end
  end
end
