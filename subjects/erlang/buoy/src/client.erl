%% GETs with buoy, which has one pool for each host and port, opens all of its connections at once, keeps them, and pipelines.
%%
%% It tries a few connections of the pool in turn and gives up if these are busy or down, no_server: nothing waits in it. A
%% room keeps the requests for which there can be no connection; the others are tried until they meet a free one, as the
%% published run tried them, where most of these tries were counted as errors. Nothing has been sent of them.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

-include_lib("buoy/include/buoy.hrl").

%% So long a connection is looked for that is free and open. After a reset buoy opens it again in half a second, and meanwhile
%% answers no_socket at once. Then they are down, for whatever reason: buoy tells none.
-define(LOOK_MS, 1000).

main() ->
    talk:main(?MODULE).

unsupported(#{pools := Pools}) when Pools > 1 ->
    <<"buoy has one pool for a host">>;
unsupported(#{keep_alive := false}) ->
    <<"buoy keeps its connections">>;
unsupported(_) ->
    none.

open(#{concurrency := Concurrency, url := Address, pool_size := Size, pipelining := Pipelining, timeout_ms := Timeout}) ->
    {ok, _} = buoy_app:start(),
    Url = buoy_utils:parse_url(Address),
    ok = buoy_pool:start(Url, [{pool_size, Size}, {pool_strategy, round_robin}, {backlog_size, Pipelining}]),
    Room = room:new(Size * Pipelining),
    Get = fun() -> get(Url, #{timeout => Timeout}, now_ms() + ?LOOK_MS) end,
    lists:duplicate(Concurrency, fun() -> room:within(Room, Get) end).

get(Url, Options, Until) ->
    case buoy:get(Url, Options) of
        {ok, #buoy_resp{status_code = 200}} -> ok;
        {ok, #buoy_resp{}} -> <<"status">>;
        {error, timeout} -> <<"timeout.total">>;
        {error, no_server} -> again(Url, Options, Until);
        {error, backlog_full} -> again(Url, Options, Until);
        {error, no_socket} -> again(Url, Options, Until);
        {error, socket_closed} -> <<"empty">>;
        {error, Why} -> talk:class_of(Why)
    end.

again(Url, Options, Until) ->
    case now_ms() < Until of
        true -> erlang:yield(), get(Url, Options, Until);
        false -> <<"connect.refused">>
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
