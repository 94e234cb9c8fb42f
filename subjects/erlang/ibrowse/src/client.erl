%% HTTP client on ibrowse, which has one pool for each host and port, and pipelines.
%%
%% When all its connections are busy, ibrowse returns retry_later at once. So a room holds the requests that must
%% wait. But ibrowse regards a connection as busy until shortly after its answer, so a request is tried again after
%% retry_later. ibrowse also returns retry_later if the connection was closed, so the attempts are limited, as in the
%% published run.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

%% Kept connections stay open as long as the program runs.
-define(KEPT_MS, 24 * 3600 * 1000).
-define(TRIES_MAX, 100).

main() ->
    talk:main(?MODULE).

unsupported(#{pools := Pools}) when Pools > 1 ->
    <<"ibrowse has one pool for a host">>;
unsupported(#{pipelining := Requests, keep_alive := false}) when Requests > 1 ->
    <<"pipelining needs connections that are kept">>;
unsupported(_) ->
    none.

open(#{concurrency := Concurrency, pool_size := Size, pipelining := Pipelining, timeout_ms := Timeout} = Setup) ->
    {ok, _} = application:ensure_all_started(ibrowse),
    Url = binary_to_list(maps:get(url, Setup)),
    Room = room:new(Size * Pipelining),
    Options = [{max_sessions, Size}, {max_pipeline_size, Pipelining}, {max_attempts, 1}, {connect_timeout, Timeout},
               {inactivity_timeout, ?KEPT_MS}, {response_format, binary}],
    Get = fun() -> get(Url, headers(Setup), Options, Timeout, ?TRIES_MAX) end,
    lists:duplicate(Concurrency, fun() -> room:within(Room, Get) end).

headers(#{keep_alive := true}) -> [];
headers(#{keep_alive := false}) -> [{"Connection", "close"}].

get(_, _, _, _, 0) ->
    <<"empty">>;
get(Url, Headers, Options, Timeout, Tries) ->
    case ibrowse:send_req(Url, Headers, get, [], Options, Timeout) of
        {ok, "200", _, _} -> ok;
        {ok, _, _, _} -> <<"status">>;
        {error, retry_later} -> timer:sleep(1), get(Url, Headers, Options, Timeout, Tries - 1);
        {error, req_timedout} -> <<"timeout.total">>;
        {error, {conn_failed, {error, timeout}}} -> <<"connect.timeout">>;
        {error, sel_conn_closed} -> <<"empty">>;
        {error, connection_closed} -> <<"empty">>;
        {error, Why} -> talk:class_of(Why)
    end.
