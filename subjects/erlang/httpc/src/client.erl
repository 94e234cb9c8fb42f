%% GETs with httpc, the client of Erlang's standard library: a profile for each pool.
%%
%% A profile opens a connection for each request until the first of them has answered; from then on it gives each request to
%% the connection with the shortest queue. max_sessions does not limit the former, so that a room for each
%% pool does. How many connections there are is decided by how many requests come before the first answer.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

%% As many may wait for a connection as there are: the published run has the same.
-define(QUEUE_MAX, 1_000_000).
%% Connections that are kept are kept as long as the program runs.
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
    Patience = 2 * maps:get(timeout_ms, Setup),  % to connect, and to be answered
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

%% Where open files run out httpc never answers some requests, nor keeps its time-out: it is not waited for without end.
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
