%% HTTP client on dlhttpc, which has one pool for each host and port.
%%
%% dlhttpc chooses a connection of the pool at random, and returns busy if it is taken; no request waits in it. So a
%% room holds the requests for which all connections are in use. A request that the room admits is tried again until
%% it finds a free connection. The published run repeated its requests in the same way, and counted most of these
%% attempts as errors.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

main() ->
    talk:main(?MODULE).

unsupported(#{pools := Pools}) when Pools > 1 ->
    <<"dlhttpc has one pool for a host">>;
unsupported(#{pipelining := Requests}) when Requests > 1 ->
    <<"dlhttpc does not pipeline">>;
unsupported(_) ->
    none.

open(#{concurrency := Concurrency, pool_size := Size, timeout_ms := Timeout} = Setup) ->
    {ok, _} = application:ensure_all_started(dlhttpc),
    Url = binary_to_list(maps:get(url, Setup)),
    Room = room:new(Size),
    Options = [{max_connections, Size}, {connect_timeout, Timeout}, {send_retry, 0}],
    Get = fun() -> get(Url, headers(Setup), Timeout, Options) end,
    lists:duplicate(Concurrency, fun() -> room:within(Room, Get) end).

headers(#{keep_alive := true}) -> [];
headers(#{keep_alive := false}) -> [{"Connection", "close"}].

get(Url, Headers, Timeout, Options) ->
    case ask(Url, Headers, Timeout, Options) of
        {ok, {{200, _}, _, _}} -> ok;
        {ok, _} -> <<"status">>;
        {error, busy} -> erlang:yield(), get(Url, Headers, Timeout, Options);
        {error, connect_timeout} -> <<"connect.timeout">>;
        {error, connection_closed} -> <<"empty">>;
        {error, Why} -> talk:class_of(Why)
    end.

%% dlhttpc performs a request in a linked process, which exits on errors that it does not expect, such as a reset.
ask(Url, Headers, Timeout, Options) ->
    process_flag(trap_exit, true),
    try
        dlhttpc:request(Url, get, Headers, [], Timeout, Options)
    catch
        exit:{busy, _} -> {error, busy};
        exit:Why -> {error, Why}
    after
        forget_exits()
    end.

forget_exits() ->
    receive
        {'EXIT', _, _} -> forget_exits()
    after 0 -> ok
    end.
