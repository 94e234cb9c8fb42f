%% HTTP client on httpc, the client of Erlang's standard library: a profile for each pool.
%%
%% Until its first answer, a profile opens a connection for each request. After that, it opens none, and gives each
%% request to the connection with the shortest queue. max_sessions does not limit the first phase, so each pool has a
%% room that does. So the number of connections is the number of requests that begin before the first answer.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

%% How many requests may wait for a connection. The published run has the same value.
-define(QUEUE_MAX, 1_000_000).
%% Kept connections stay open as long as the program runs.
-define(KEPT_MS, 24 * 3600 * 1000).

main() ->
    talk:main(?MODULE).

unsupported(#{pipelining := Requests}) when Requests > 1 ->
    <<"until the first answer, httpc opens a connection for each request that could be pipelined">>;
unsupported(_) ->
    none.

open(#{concurrency := Concurrency, pools := Count} = Setup) ->
    {ok, _} = application:ensure_all_started(inets),
    Pools = list_to_tuple([open_pool(Pool, Setup) || Pool <- lists:seq(1, Count)]),
    Ask = {binary_to_list(maps:get(url, Setup)), headers(Setup)},
    Limits = limits(Setup),
    Patience = 2 * maps:get(timeout_ms, Setup),  % one time-out to connect, one for the answer
    [request(element(Worker rem Count + 1, Pools), Ask, Limits, Patience) || Worker <- lists:seq(0, Concurrency - 1)].

open_pool(Pool, #{pool_size := Size}) ->
    Profile = list_to_atom("pool" ++ integer_to_list(Pool)),
    {ok, _} = inets:start(httpc, [{profile, Profile}]),
    ok = httpc:set_options([{max_sessions, Size}, {max_keep_alive_length, ?QUEUE_MAX}, {keep_alive_timeout, ?KEPT_MS}],
                           Profile),
    {Profile, room:new(Size)}.

headers(#{keep_alive := true}) -> [];
headers(#{keep_alive := false}) -> [{"connection", "close"}].

limits(#{timeout_ms := Timeout}) ->
    [{timeout, Timeout}, {connect_timeout, Timeout}, {autoredirect, false}].

request({Profile, Room}, Ask, Limits, Patience) ->
    Get = fun() -> get(Profile, Ask, Limits, Patience) end,
    fun() -> room:within(Room, Get) end.

%% When open files run out, httpc never answers some requests, and ignores its time-out. So we have a time-out, too.
get(Profile, Ask, Limits, Patience) ->
    case httpc:request(get, Ask, Limits, [{sync, false}, {body_format, binary}], Profile) of
        {ok, Id} ->
            receive
                {http, {Id, Answer}} -> class(Answer)
            after Patience -> <<"timeout.total">>
            end;
        {error, Why} ->
            class({error, Why})
    end.

class({{_, 200, _}, _, _}) -> ok;
class({{_, _, _}, _, _}) -> <<"status">>;
class({error, socket_closed_remotely}) -> <<"empty">>;
class({error, Why}) -> talk:class_of(Why).
