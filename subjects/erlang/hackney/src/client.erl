%% HTTP client on hackney: a hackney pool for each pool. A request that finds no connection waits in the pool's queue.
-module(client).
-behaviour(talk).
-export([main/0, unsupported/1, open/1]).

%% Kept connections stay open as long as the program runs.
-define(KEPT_MS, 24 * 3600 * 1000).

main() ->
    talk:main(?MODULE).

unsupported(#{pipelining := Requests}) when Requests > 1 ->
    <<"hackney does not pipeline">>;
unsupported(_) ->
    none.

open(#{concurrency := Concurrency, pools := Count, url := Url} = Setup) ->
    {ok, _} = application:ensure_all_started(hackney),
    Pools = list_to_tuple([open_pool(Pool, Setup) || Pool <- lists:seq(1, Count)]),
    [request(element(Worker rem Count + 1, Pools), Url, Setup) || Worker <- lists:seq(0, Concurrency - 1)].

open_pool(Pool, #{pool_size := Size}) ->
    Name = list_to_atom("pool" ++ integer_to_list(Pool)),
    ok = hackney_pool:start_pool(Name, [{max_connections, Size}, {timeout, ?KEPT_MS}]),
    Name.

request(Pool, Url, #{timeout_ms := Timeout} = Setup) ->
    Headers = headers(Setup),
    Options = [{pool, Pool}, {checkout_timeout, infinity}, {connect_timeout, Timeout}, {recv_timeout, Timeout},
               {follow_redirect, false}, with_body],
    fun() -> get(Url, Headers, Options) end.

headers(#{keep_alive := true}) -> [];
headers(#{keep_alive := false}) -> [{<<"Connection">>, <<"close">>}].

get(Url, Headers, Options) ->
    case hackney:request(get, Url, Headers, <<>>, Options) of
        {ok, 200, _, _} -> ok;
        {ok, _, _, _} -> <<"status">>;
        {ok, _, _} -> <<"status">>;
        {error, connect_timeout} -> <<"connect.timeout">>;
        {error, Why} -> talk:class_of(Why)
    end.
