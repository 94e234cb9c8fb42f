%% Room for so many requests at once; who finds none waits in line, as long as it takes.
%%
%% For libraries that keep connections but do not wait for one. It must not know what the room is for; the same
%% text stands in each folder that needs it, in Erlang's and Elixir's.
-module(room).
-export([new/1, within/2]).

%% A process that counts, as long as its caller lives.
-spec new(pos_integer()) -> pid().
new(Places) ->
    spawn_link(fun() -> count(Places, queue:new()) end).

%% Calls the function with a place taken. Who takes one gives it back, whatever comes of it.
-spec within(pid(), fun(() -> Result)) -> Result.
within(Room, Act) ->
    Turn = make_ref(),
    Room ! {take, self(), Turn},
    receive
        {Turn, taken} -> ok
    end,
    try
        Act()
    after
        Room ! given_back
    end.

count(Free, Waiting) ->
    receive
        {take, Pid, Turn} when Free > 0 ->
            Pid ! {Turn, taken},
            count(Free - 1, Waiting);
        {take, Pid, Turn} ->
            count(Free, queue:in({Pid, Turn}, Waiting));
        given_back ->
            case queue:out(Waiting) of
                {{value, {Pid, Turn}}, Rest} ->
                    Pid ! {Turn, taken},
                    count(Free, Rest);
                {empty, _} ->
                    count(Free + 1, Waiting)
            end
    end.
