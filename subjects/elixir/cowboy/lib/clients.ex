# The connected clients: an Elixir Registry, which Phoenix also uses for its broadcasts.

defmodule Shootout.Clients do
  @everybody "everybody"

  def child_spec(_) do
    Registry.child_spec(
      keys: :duplicate,
      name: __MODULE__,
      partitions: System.schedulers_online()
    )
  end

  # Registers the calling process until it ends.
  def join do
    {:ok, _} = Registry.register(__MODULE__, @everybody, nil)
    :ok
  end

  # Sends the message to the process of each client. Returns the number of clients.
  def send_all(message) do
    clients = Registry.lookup(__MODULE__, @everybody)
    Enum.each(clients, fn {pid, _} -> send(pid, message) end)
    length(clients)
  end
end
