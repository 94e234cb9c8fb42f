%% The protocol between trueload and a client in Erlang or Elixir, and the processes that perform the requests of an
%% order.
%%
%% A client is a module with two callbacks. Its requests are functions, one for each request that is open at once. For
%% each function a process calls it as long as requests of the order are left. Input that is neither a setup nor an
%% order ends the program with an error. This module must not use an HTTP library. It lies in subjects/shared, and is
%% copied into the build of each subject whose manifest names its folder.
-module(talk).
-export([main/1, class_of/1]).
-export_type([setup/0, request/0]).

%% The first line: `concurrency` requests at once, over `pools` client objects with `pool_size` connections each.
-type setup() :: #{url := binary(), concurrency := pos_integer(), pools := pos_integer(), pool_size := pos_integer(),
                   timeout_ms := pos_integer(), pipelining := pos_integer(), keep_alive := boolean()}.
%% Performs a request. Returns ok if the answer was a 200 and was read to its end, else the failure class.
-type request() :: fun(() -> ok | binary()).

-callback unsupported(setup()) -> none | binary().
%% Returns `concurrency` functions, one for each request that is open at once.
-callback open(setup()) -> [request()].

%% Reads the setup and performs the orders, then ends the program.
-spec main(module()) -> no_return().
main(Client) ->
    %% Only answers may go to stdout, and failed requests are not logged.
    logger:set_primary_config(level, none),
    Setup = setup(io:get_line("")),
    case Client:unsupported(Setup) of
        none ->
            Requests = Client:open(Setup),
            say(#{ready => true}),
            hear_orders(Requests);
        Why ->
            say(#{unsupported => Why}),
            halt(0)
    end.

setup(eof) ->
    die("no setup");
setup(Line) ->
    try jiffy:decode(Line, [return_maps]) of
        #{<<"url">> := Url, <<"concurrency">> := Concurrency, <<"pools">> := Pools, <<"pool_size">> := Size,
          <<"timeout_ms">> := Timeout, <<"pipelining">> := Pipelining, <<"keep_alive">> := KeepAlive} = Given
          when map_size(Given) =:= 7, is_binary(Url), is_integer(Concurrency), Concurrency > 0, is_integer(Pools), Pools > 0,
               is_integer(Size), Size > 0, is_integer(Timeout), Timeout > 0, is_integer(Pipelining), Pipelining > 0,
               is_boolean(KeepAlive) ->
            #{url => Url, concurrency => Concurrency, pools => Pools, pool_size => Size, timeout_ms => Timeout,
              pipelining => Pipelining, keep_alive => KeepAlive};
        _ ->
            die("no setup: a part is missing, or of another kind")
    catch
        _:_ -> die("no setup: no JSON")
    end.

hear_orders(Requests) ->
    case io:get_line("") of
        eof ->
            halt(0);
        Line ->
            case re:run(Line, "\\Ago ([0-9]{1,9})\\s*\\z", [{capture, all_but_first, list}]) of
                {match, [Number]} -> say(perform(Requests, list_to_integer(Number)));
                nomatch -> die("no order")
            end,
            hear_orders(Requests)
    end.

perform(Requests, Number) ->
    Left = atomics:new(1, [{signed, true}]),
    atomics:put(Left, 1, Number),
    Begun = erlang:monotonic_time(),
    Works = [spawn_monitor(fun() -> exit({worked, work(Request, Left, [], #{})}) end) || Request <- Requests],
    Tallies = [worked(Work) || Work <- Works],
    Elapsed = erlang:monotonic_time() - Begun,
    Latencies = lists:sort(lists:append([Those || {Those, _} <- Tallies])),
    #{ok => length(Latencies), failed => lists:foldl(fun add/2, #{}, [Those || {_, Those} <- Tallies]),
      elapsed_s => us(Elapsed) / 1.0e6, latency_us => figures(list_to_tuple(Latencies))}.

%% Performs requests until none of the order is left.
work(Request, Left, Latencies, Failed) ->
    case atomics:sub_get(Left, 1, 1) >= 0 of
        true ->
            Sent = erlang:monotonic_time(),
            case Request() of
                ok -> work(Request, Left, [erlang:monotonic_time() - Sent | Latencies], Failed);
                Class -> work(Request, Left, Latencies, add(#{Class => 1}, Failed))
            end;
        false ->
            {Latencies, Failed}
    end.

worked({Pid, Monitor}) ->
    receive
        {'DOWN', Monitor, process, Pid, {worked, Tally}} -> Tally;
        {'DOWN', Monitor, process, Pid, Why} -> die(io_lib:format("a request broke: ~0p", [Why]))
    end.

add(Some, Others) ->
    maps:fold(fun(Class, Count, All) -> maps:update_with(Class, fun(Before) -> Before + Count end, Count, All) end,
              Others, Some).

figures({}) ->
    null;
figures(Sorted) ->
    At = fun(Percent) -> us(element((Percent * tuple_size(Sorted) + 99) div 100, Sorted)) end,
    #{p50 => At(50), p90 => At(90), p99 => At(99), max => At(100)}.

us(Native) ->
    erlang:convert_time_unit(Native, native, nanosecond) / 1.0e3.

say(Line) ->
    io:put_chars([jiffy:encode(Line), $\n]).

-spec die(iodata()) -> no_return().
die(Why) ->
    io:put_chars(standard_error, [Why, $\n]),
    halt(1).

%% Returns the failure class of an error: that of the first known system error (such as econnreset) anywhere inside
%% it.
-spec class_of(term()) -> binary().
class_of(Error) ->
    case words(Error) of
        [Class | _] -> Class;
        [] -> <<"other">>
    end.

words(Word) when is_atom(Word) -> class_of_word(Word);
words(Tuple) when is_tuple(Tuple) -> words(tuple_to_list(Tuple));
words(Map) when is_map(Map) -> words(maps:values(Map));
words([First | Rest]) -> words(First) ++ words(Rest);
words(_) -> [].

class_of_word(econnrefused) -> [<<"connect.refused">>];
class_of_word(ehostunreach) -> [<<"connect.unreachable">>];
class_of_word(enetunreach) -> [<<"connect.unreachable">>];
class_of_word(econnreset) -> [<<"reset">>];
class_of_word(econnaborted) -> [<<"reset">>];
class_of_word(epipe) -> [<<"reset">>];
class_of_word(closed) -> [<<"empty">>];
class_of_word(timeout) -> [<<"timeout.total">>];
class_of_word(etimedout) -> [<<"timeout.total">>];
class_of_word(emfile) -> [<<"local.fds">>];
class_of_word(enfile) -> [<<"local.fds">>];
class_of_word(system_limit) -> [<<"local.fds">>];
class_of_word(eaddrnotavail) -> [<<"local.ports">>];
class_of_word(_) -> [].
