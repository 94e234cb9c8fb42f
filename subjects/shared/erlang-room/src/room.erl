%% A room admits a fixed number of requests at once. Further requests wait in order, without a time-out.
%%
%% It is for libraries that keep connections, but in which a request does not wait for one. This module must not know
%% what the room is for. It lies in subjects/shared, and is copied into the build of each subject whose manifest names
%% its folder.
-module(room).
-export([new/1, within/2]).

%% Starts the process of a room. It is linked to its caller.
-spec new(pos_integer()) -> pid().
new(Places) ->
    spawn_link(fun() -> count(Places, queue:new()) end).

%% Calls the function while it holds a place. The place is given back even if the function fails.
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
