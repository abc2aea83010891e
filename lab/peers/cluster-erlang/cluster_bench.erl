%% Questions to a gen_server of another node, and to entities, named processes that are started at
%% some node with the first message for them:
%%   erl -noshell -name node1@127.0.0.1 -setcookie lab -s cluster_bench serve
%%   erl -noshell -name client@127.0.0.1 -setcookie lab -s cluster_bench client \
%%       -extra CASE RATE SECONDS WARM_UP ENTITIES
-module(cluster_bench).
-behaviour(gen_server).
-export([serve/0, client/0, init/1, handle_call/3, handle_cast/2]).

-define(FIRST, 'node1@127.0.0.1').
-define(TEXT, binary:copy(<<"x">>, 100)).
-define(OUTSTANDING, 64).
-define(TELLS, 1000).
-define(ENTITIES, 1000).
-define(PAUSE, 200).
-define(RECOVERY_TICK, 50).

%% A node: the named server, which also starts entities.

serve() ->
    connect(),
    {ok, _} = gen_server:start({local, answerer}, ?MODULE, [], []).

init(_) -> {ok, 0}.

handle_call({ask, Number, _Text}, _, Told) -> {reply, Number + 1, Told};
handle_call(told, _, Told) -> {reply, Told, Told};
handle_call(holder, _, Told) -> {reply, list_to_integer(os:getpid()), Told};
handle_call({activate, Id}, _, Told) ->
    _ = gen_server:start({global, {entity, Id}}, ?MODULE, [], []),
    {reply, ok, Told}.

handle_cast({tell, _Number, _Text}, Told) -> {noreply, Told + 1}.

connect() ->
    case net_adm:ping(?FIRST) of
        pong -> ok;
        pang -> timer:sleep(?PAUSE), connect()
    end.

%% The client.

client() ->
    connect(),
    ok = global:sync(),
    [Case | Numbers] = init:get_plain_arguments(),
    Figures = run(Case, [list_to_integer(Number) || Number <- Numbers]),
    Fields = [io_lib:format("\"~s\": ~w", [Name, Value]) || {Name, Value} <- Figures],
    io:format("{~s}~n", [lists:join(", ", Fields)]),
    halt(0).

run("ask", [Rate, Seconds, WarmUp, _]) ->
    closed(WarmUp, fun ask/1),
    timer:sleep(?PAUSE),
    window("ask", fun() -> paced(Rate, Seconds) end);
run("flood", [_, Seconds, WarmUp, _]) ->
    OfEntity = fun(Number) -> ask_entity(Number rem ?ENTITIES, {ask, Number, ?TEXT}) end,
    flood("ask", Seconds, WarmUp, fun ask/1)
        ++ told(Seconds, WarmUp)
        ++ flood("entity", Seconds, WarmUp, OfEntity);
run("entities", [_, _, WarmUp, Entities]) ->
    closed(WarmUp, fun ask/1),
    Activate = fun(Id) -> ask_entity({new, Id}, {ask, Id, ?TEXT}) end,
    Share = fun(Worker) -> [Activate(Id) || Id <- lists:seq(Worker, Entities, ?OUTSTANDING)] end,
    {Spent, ok} = window("entities", fun() -> {Entities, timed(fun() -> share(Share) end)} end),
    [{"rate", Entities / Spent}, {"entities", Entities}];
run("recover", _) ->
    both_hold(#{}, 1),
    Id = rand:uniform(?ENTITIES),
    Pid = ask_entity(Id, holder),
    io:format("kill ~w~n", [Pid]),
    recovered(Id, Pid, erlang:monotonic_time(millisecond), 1).

%% Deadlines are those of gen_server, 5 s.
ask(Number) ->
    Answer = Number + 1,
    Answer = gen_server:call({answerer, ?FIRST}, {ask, Number, ?TEXT}).

ask_entity(Id, Message) ->
    try gen_server:call({global, {entity, Id}}, Message)
    catch exit:_ ->
        Hosts = lists:sort(nodes()),
        Host = lists:nth(erlang:phash2(Id, length(Hosts)) + 1, Hosts),
        ok = gen_server:call({answerer, Host}, {activate, Id}),
        gen_server:call({global, {entity, Id}}, Message)
    end.

%% At each millisecond whose turn it is, as many questions as are due.
paced(Rate, Seconds) ->
    Main = self(),
    Ticks = min(Rate, 1000),
    Burst = max(1, Rate div 1000),
    Start = erlang:monotonic_time(millisecond) + 100,
    Late = [begin
        Due = Start + Tick * 1000 div Ticks,
        erlang:start_timer(Due, Main, due, [{abs, true}]),
        receive {timeout, _, due} -> ok end,
        Late = since(Due),
        [spawn(fun() -> Main ! {asked, catch ask(Number), since(Due)} end)
            || Number <- lists:seq(1, Burst)],
        Late
    end || Tick <- lists:seq(0, Ticks * Seconds - 1)],
    All = [receive {asked, Answer, Spent} -> {Answer, Spent} end
        || _ <- lists:seq(1, Ticks * Seconds * Burst)],
    Spent = lists:sort([Spent || {Answer, Spent} <- All, is_integer(Answer)]),
    {length(Spent), [
        {"p50_ms", percentile(50, Spent)},
        {"p99_ms", percentile(99, Spent)},
        {"late_p50_ms", percentile(50, lists:sort(Late))},
        {"failed", length(All) - length(Spent)}
    ]}.

since(Due) -> erlang:monotonic_time(nanosecond) / 1.0e6 - Due.

percentile(_, []) -> 0;
percentile(Percent, Sorted) -> lists:nth(ceil(length(Sorted) * Percent / 100), Sorted).

flood(Name, Seconds, WarmUp, Ask) ->
    closed(WarmUp, Ask),
    Rate = window(Name, fun() -> Count = closed(Seconds, Ask), {Count, Count / Seconds} end),
    [{Name ++ "_rate", Rate}].

%% As many questions at a time as there are workers; returns how many were replied to.
closed(Seconds, Ask) ->
    Done = counters:new(1, []),
    End = erlang:monotonic_time(millisecond) + Seconds * 1000,
    share(fun(Worker) -> asking(Ask, Worker, End, Done) end),
    counters:get(Done, 1).

asking(Ask, Number, End, Done) ->
    case erlang:monotonic_time(millisecond) < End of
        true ->
            Ask(Number),
            counters:add(Done, 1, 1),
            asking(Ask, Number + ?OUTSTANDING, End, Done);
        false -> ok
    end.

share(Work) ->
    Start = fun(Number) -> spawn_monitor(fun() -> Work(Number) end) end,
    Workers = [Start(Number) || Number <- lists:seq(1, ?OUTSTANDING)],
    [receive {'DOWN', Monitor, _, _, Why} -> normal = Why end || {_, Monitor} <- Workers],
    ok.

%% Batches of messages, each with a question after it.
told(Seconds, WarmUp) ->
    Tell = fun() ->
        [gen_server:cast({answerer, ?FIRST}, {tell, Number, ?TEXT}) || Number <- lists:seq(1, ?TELLS)],
        gen_server:call({answerer, ?FIRST}, told)
    end,
    repeat(Tell, erlang:monotonic_time(millisecond) + WarmUp * 1000, 0),
    Before = gen_server:call({answerer, ?FIRST}, told),
    window("tell", fun() ->
        End = erlang:monotonic_time(millisecond) + Seconds * 1000,
        {Spent, Batches} = timed(fun() -> repeat(Tell, End, 0) end),
        Told = gen_server:call({answerer, ?FIRST}, told) - Before,
        {Told, [{"tell_rate", Told / Spent}, {"lost", Batches * ?TELLS - Told}]}
    end).

repeat(Work, End, Count) ->
    case erlang:monotonic_time(millisecond) < End of
        true -> Work(), repeat(Work, End, Count + 1);
        false -> Count
    end.

%% Asks for entities until two nodes hold some.
both_hold(Holders, _) when map_size(Holders) =:= 2 -> ok;
both_hold(Holders, Id) ->
    length(nodes()) < 2 andalso timer:sleep(?PAUSE),
    both_hold(Holders#{ask_entity({search, Id}, holder) => held}, Id + 1).

recovered(Id, Killed, Start, Tick) ->
    Main = self(),
    spawn(fun() -> Main ! {held, catch ask_entity(Id, holder)} end),
    receive
        {held, Pid} when is_integer(Pid), Pid =/= Killed ->
            [{"recovery_ms", erlang:monotonic_time(millisecond) - Start}, {"asks", Tick}]
    after ?RECOVERY_TICK -> recovered(Id, Killed, Start, Tick + 1)
    end.

%% The meter counts CPU between the two lines, over the number, and says when it has looked.
window(Name, Work) ->
    say("begin ~s~n", [Name]),
    {Count, Result} = Work(),
    say("end ~s ~w~n", [Name, Count]),
    Result.

say(Format, Values) ->
    io:format(Format, Values),
    "\n" = io:get_line("").

timed(Work) ->
    Start = erlang:monotonic_time(microsecond),
    Result = Work(),
    {(erlang:monotonic_time(microsecond) - Start) / 1.0e6, Result}.
