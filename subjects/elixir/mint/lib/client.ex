# HTTP client on Mint alone, which is a connection without a pool. Each request opens a connection in its own process,
# and closes it. It is the reference of the published table.
#
# With the argument http2 it speaks HTTP/2 in plain text. Each pool then has one connection that is kept, and requests
# are streams on it.

defmodule Client do
  @behaviour :talk

  def main, do: :talk.main(__MODULE__)

  defp over_http2, do: System.argv() == ["http2"]

  @impl true
  def unsupported(setup), do: if(over_http2(), do: why_not_http2(setup), else: why_not_http1(setup))

  defp why_not_http1(%{keep_alive: true}), do: "Mint has no pool to keep connections in"

  defp why_not_http1(%{pipelining: requests}) when requests > 1,
    do: "pipelining needs connections that are kept"

  defp why_not_http1(_), do: :none

  defp why_not_http2(%{pool_size: connections}) when connections > 1,
    do: "over HTTP/2 a pool here has one connection"

  defp why_not_http2(_), do: :none

  @impl true
  def open(%{concurrency: concurrency, pools: pools} = setup) do
    %URI{host: host, port: port, path: path} = URI.parse(setup.url)
    target = Map.merge(setup, %{host: host, port: port, path: path || "/"})
    gets = if over_http2(), do: for(_ <- 1..pools, do: shared(target)), else: [fn -> get(target) end]

    gets |> Stream.cycle() |> Enum.take(concurrency)
  end

  defp shared(target) do
    {:ok, shared} = Shared.start_link(target)
    fn -> Shared.get(shared) end
  end

  defp get(target) do
    options = [mode: :passive, transport_opts: [timeout: target.timeout_ms]]

    case Mint.HTTP1.connect(:http, target.host, target.port, options) do
      {:ok, connection} -> ask(connection, target)
      {:error, %{reason: :timeout}} -> "connect.timeout"
      {:error, why} -> :talk.class_of(why)
    end
  end

  defp ask(connection, target) do
    case Mint.HTTP1.request(connection, "GET", target.path, [{"connection", "close"}], nil) do
      {:ok, connection, _} -> read(connection, target, nil)
      {:error, connection, why} -> failed(connection, why)
    end
  end

  # Reads until the answer is complete. `status` is nil until the status line has arrived.
  defp read(connection, target, status) do
    case Mint.HTTP1.recv(connection, 0, target.timeout_ms) do
      {:ok, connection, parts} -> heard(connection, target, status, parts)
      {:error, connection, %{reason: :timeout}, _} -> failed(connection, late(status))
      {:error, connection, why, _} -> failed(connection, why)
    end
  end

  defp heard(connection, target, status, parts) do
    status = Enum.find_value(parts, status, &status_of/1)

    if Enum.any?(parts, &match?({:done, _}, &1)) do
      Mint.HTTP1.close(connection)
      if status == 200, do: :ok, else: "status"
    else
      read(connection, target, status)
    end
  end

  defp status_of({:status, _, status}), do: status
  defp status_of(_), do: nil

  defp late(nil), do: "timeout.first_byte"
  defp late(_), do: "timeout.total"

  defp failed(connection, why) do
    Mint.HTTP1.close(connection)
    if is_binary(why), do: why, else: :talk.class_of(why)
  end
end
