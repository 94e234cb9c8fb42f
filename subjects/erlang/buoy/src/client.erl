%% HTTP client on buoy. buoy has one pool for each host and port, opens all its connections at once, keeps them, and
%% pipelines.
%%
%% buoy tries a few connections of the pool in turn. If these are busy or down it returns an error (no_server,
%% backlog_full or no_socket); no request waits in it. So a room holds the requests for which all connections are in
%% use. A request that the room admits is tried again until it finds a free connection. The published run repeated its
%% requests in the same way, and counted most of these attempts as errors. A request that is tried again has not been
%% sent before.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

-include_lib("buoy/include/buoy.hrl").

%% How long a request is tried again to find a free, open connection. After a reset, buoy opens the connection again
%% within half a second, and until then returns no_socket at once. When this time is over, the connections count as
%% down; buoy does not report the reason.
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
