# Everybody who is connected: a registry, as Phoenix uses it for its broadcasts.

defmodule Shootout.Clients do
  @everybody "everybody"

  def child_spec(_) do
    Registry.child_spec(
      keys: :duplicate,
      name: __MODULE__,
      partitions: System.schedulers_online()
    )
  end

  # The calling process, until it ends.
  def join do
    {:ok, _} = Registry.register(__MODULE__, @everybody, nil)
    :ok
  end

  # Sends the message to the process of every client, and tells how many they are.
  def send_all(message) do
    clients = Registry.lookup(__MODULE__, @everybody)
    Enum.each(clients, fn {pid, _} -> send(pid, message) end)
    length(clients)
  end
end
