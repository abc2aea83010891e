%% The actor benchmark in Erlang: erl -noshell +S 1:1 +P 4000000 -s actor_bench main -extra CASE MILLISECONDS ACTORS
%% Mailboxes have no bound. Questions go through gen_server, with its deadline of five seconds.
-module(actor_bench).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2]).

-define(TELLS, 1000).
-define(RING, 503).
-define(HOPS, 200 * ?RING).
-define(SENDERS, 8).
-define(SENDER_MESSAGES, 10000).
-define(ASKS, 1000).
-define(PAIRS, 64).
-define(BUSY_PAIRS, 4).
-define(WORK_NANOSECONDS, 1000).
-define(WORK_NANOSECONDS_MAX, 2000).
-define(SUBSCRIBERS, 1000).
-define(PUBLICATIONS, 10).
-define(CHUNK, 1000).
-define(STATE_BYTES, 8).

main() ->
    [Case, Milliseconds, Actors] = init:get_plain_arguments(),
    Outcome = run(Case, list_to_integer(Milliseconds), list_to_integer(Actors)),
    io:format("~s~n", [Outcome]),
    halt(0).

run("tell", Time, _) -> tell(Time);
run("hop", Time, _) -> hop(Time);
run("fan-in" ++ Rest, Time, _) when Rest =:= ""; Rest =:= "-two" -> fan_in(Time);
run("fan-in-actors" ++ _, Time, _) -> fan_in_actors(Time);
run("ask", Time, _) -> ask(Time);
run("ask-queued", Time, _) -> ask_inline(Time);
run("ask-inline", Time, _) -> ask_inline(Time);
run("ping-pong", Time, _) -> ping_pong(Time);
run("spawn", _, Actors) -> crowd(Actors);
run("idle", _, Actors) -> crowd(Actors);
run("async", _, _) -> "{\"missing\": \"a handler is what it is, and waits as it likes: see tell\"}";
run("bus", Time, _) -> bus(Time).

%% Cases

tell(Time) ->
    Counter = counter(?TELLS),
    batches(Time, ?TELLS, fun() -> send_all(Counter, ?TELLS), done() end).

hop(Time) ->
    Main = self(),
    Members = [spawn(fun() -> ring_start(Main) end) || _ <- lists:seq(1, ?RING)],
    [First | Others] = Members,
    lists:foreach(fun({Member, Next}) -> Member ! {link, Next} end,
                  lists:zip(Members, Others ++ [First])),
    batches(Time, ?HOPS, fun() -> First ! ?HOPS, done() end).

fan_in(Time) ->
    Counter = counter(?SENDERS * ?SENDER_MESSAGES),
    Batch = fun() ->
        [spawn(fun() -> send_all(Counter, ?SENDER_MESSAGES) end) || _ <- lists:seq(1, ?SENDERS)],
        done()
    end,
    batches(Time, ?SENDERS * ?SENDER_MESSAGES, Batch).

fan_in_actors(Time) ->
    Counter = counter(?SENDERS * ?SENDER_MESSAGES),
    Senders = [spawn(fun() -> sender(Counter) end) || _ <- lists:seq(1, ?SENDERS)],
    Batch = fun() -> [Sender ! ?SENDER_MESSAGES || Sender <- Senders], done() end,
    batches(Time, ?SENDERS * ?SENDER_MESSAGES, Batch).

ask(Time) ->
    {ok, Answerer} = gen_server:start(?MODULE, [], []),
    Main = self(),
    Asking = fun() -> ask_all(Answerer, ?ASKS), Main ! done end,
    batches(Time, ?ASKS, fun() -> spawn(Asking), done() end).

ask_inline(Time) ->
    {ok, Answerer} = gen_server:start(?MODULE, [], []),
    Main = self(),
    Asker = spawn(fun() -> asker(Answerer, Main) end),
    batches(Time, ?ASKS, fun() -> Asker ! ?ASKS, done() end).

ping_pong(Time) ->
    play(Time div 2),
    play(Time).

crowd(Actors) ->
    Before = rss_bytes(),
    Clock = clock(),
    chunks(Actors),
    Sample = sample(Clock, Actors, Actors),
    Bytes = (rss_bytes() - Before) / Actors - ?STATE_BYTES,
    measured(Sample ++ [{"bytes", Bytes}]).

bus(Time) ->
    {ok, _} = pg:start_link(),
    Main = self(),
    Meeting = spawn(fun() -> meeting(?SUBSCRIBERS, ?SUBSCRIBERS, Main) end),
    Join = fun() -> ok = pg:join(topic, self()), Main ! done, count(Meeting, ?PUBLICATIONS, ?PUBLICATIONS, 0) end,
    [begin spawn(Join), done() end || _ <- lists:seq(1, ?SUBSCRIBERS)],
    Batch = fun() ->
        [[Member ! Number || Member <- pg:get_local_members(topic)] || Number <- lists:seq(1, ?PUBLICATIONS)],
        done()
    end,
    batches(Time, ?PUBLICATIONS * ?SUBSCRIBERS, Batch).

%% Actors

counter(Batch) ->
    Main = self(),
    spawn(fun() -> count(Main, Batch, Batch, 0) end).

count(Who, 0, Batch, Sum) ->
    Who ! done,
    count(Who, Batch, Batch, Sum);
count(Who, Left, Batch, Sum) ->
    receive Number -> count(Who, Left - 1, Batch, (Sum + Number) band 16#ffffff) end.

meeting(0, Parties, Main) ->
    Main ! done,
    meeting(Parties, Parties, Main);
meeting(Missing, Parties, Main) ->
    receive done -> meeting(Missing - 1, Parties, Main) end.

send_all(_, 0) -> ok;
send_all(Counter, Left) ->
    Counter ! Left,
    send_all(Counter, Left - 1).

ring_start(Main) ->
    receive {link, Next} -> ring(Next, Main) end.

ring(Next, Main) ->
    receive
        0 -> Main ! done;
        Left -> Next ! Left - 1
    end,
    ring(Next, Main).

sender(Counter) ->
    receive Count -> send_all(Counter, Count) end,
    sender(Counter).

init(_) -> {ok, 0}.
handle_call(Number, _, Answered) -> {reply, Number + 1, Answered + 1}.
handle_cast(_, Answered) -> {noreply, Answered}.

ask_all(_, 0) -> ok;
ask_all(Answerer, Left) ->
    Answer = Left + 1,
    Answer = gen_server:call(Answerer, Left),
    ask_all(Answerer, Left - 1).

asker(Answerer, Main) ->
    receive Count -> ask_all(Answerer, Count) end,
    Main ! done,
    asker(Answerer, Main).

pong() ->
    receive {ball, Ping} -> Ping ! ball end,
    pong().

ping(Pong, Over, Computes, RoundTrips, Computed, Main) ->
    Pong ! {ball, self()},
    receive ball -> ok end,
    Took = computed(Computes),
    case atomics:get(Over, 1) of
        0 -> ping(Pong, Over, Computes, RoundTrips + 1, Computed + Took, Main);
        _ -> Main ! {left, RoundTrips + 1, Computed + Took}
    end.

%% At most what it should have been: it may have given way to others meanwhile.
computed(false) -> 0;
computed(true) ->
    Start = erlang:monotonic_time(nanosecond),
    min(compute(Start + ?WORK_NANOSECONDS) - Start, ?WORK_NANOSECONDS_MAX).

compute(End) ->
    case erlang:monotonic_time(nanosecond) of
        Now when Now >= End -> Now;
        _ -> compute(End)
    end.

chunks(0) -> ok;
chunks(Left) ->
    Count = min(Left, ?CHUNK),
    [spawn(fun() -> idle(0) end) || _ <- lists:seq(2, Count)],
    Last = spawn(fun() -> idle(0) end),
    Last ! {self(), 1},
    done(),
    chunks(Left - Count).

idle(Sum) ->
    receive {Who, Number} -> Who ! done, idle(Sum + Number) end.

%% Measuring

done() -> receive done -> ok end.

%% Before the clock runs: half as long, to warm up.
batches(Time, Operations, Batch) ->
    repeat(clock(), Time div 2, Batch, 0),
    Clock = clock(),
    Batches = repeat(Clock, Time, Batch, 0),
    measured(sample(Clock, Batches * Operations, Batches * Operations)).

repeat({Start, _} = Clock, Time, Batch, Count) ->
    case erlang:monotonic_time(millisecond) - Start div 1000000 < Time of
        true -> Batch(), repeat(Clock, Time, Batch, Count + 1);
        false -> Count
    end.

play(Time) ->
    Over = atomics:new(1, []),
    Main = self(),
    Clock = {Start, _} = clock(),
    [begin
         Pong = spawn(fun pong/0),
         Computes = Number > ?PAIRS,
         spawn(fun() -> ping(Pong, Over, Computes, 0, 0, Main) end)
     end || Number <- lists:seq(1, ?PAIRS + ?BUSY_PAIRS)],
    timer:sleep(Time),
    atomics:put(Over, 1, 1),
    Left = [receive {left, RoundTrips, Computed} -> {RoundTrips, Computed} end
            || _ <- lists:seq(1, ?PAIRS + ?BUSY_PAIRS)],
    Wall = erlang:monotonic_time(nanosecond) - Start,
    RoundTrips = lists:sum([RoundTrips || {RoundTrips, _} <- Left]),
    AtWork = Wall * erlang:system_info(schedulers) - lists:sum([Computed || {_, Computed} <- Left]),
    Sample = sample(Clock, RoundTrips, RoundTrips),
    measured(lists:keystore("nanoseconds", 1, Sample, {"nanoseconds", AtWork / RoundTrips})).

clock() ->
    Accounts = accounts(),
    {erlang:monotonic_time(nanosecond), Accounts}.

sample({Start, {RanBefore, WaitedBefore}}, Operations, All) ->
    Wall = erlang:monotonic_time(nanosecond) - Start,
    {RanAfter, WaitedAfter} = accounts(),
    Ran = RanAfter - RanBefore,
    [{"operations", Operations},
     {"operations_with_warm_up", All},
     {"nanoseconds", Wall / Operations},
     {"cpu_nanoseconds", Ran / Operations},
     {"waited", (WaitedAfter - WaitedBefore) / Ran}].

%% Of all threads, as the kernel has it: nanoseconds on a core, nanoseconds without one.
accounts() ->
    {ok, Threads} = file:list_dir("/proc/self/task"),
    All = [account(Thread) || Thread <- Threads],
    {lists:sum([Ran || {Ran, _} <- All]), lists:sum([Waited || {_, Waited} <- All])}.

account(Thread) ->
    {ok, Text} = file:read_file("/proc/self/task/" ++ Thread ++ "/schedstat"),
    [Ran, Waited | _] = binary:split(Text, <<" ">>, [global]),
    {binary_to_integer(Ran), binary_to_integer(Waited)}.

measured(Sample) ->
    Fields = [io_lib:format("\"~s\": ~w", [Name, Value]) || {Name, Value} <- Sample],
    ["{", lists:join(", ", Fields), "}"].

rss_bytes() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4096.
